/* Which build this is; the only object that changes with the date of the build. */
#include "service/admin/internal.h"

const char report_release[] = CONCLAVE_VERSION;
const char report_version[] =
    REPORT_ZOOKEEPER "-conclave-" CONCLAVE_VERSION ", built on " CONCLAVE_BUILT;
