/* The page loads no algorithm from a file, so none can end it. */
#include "process/contract.h"

void contract_watch_thread(void) {}
