/* The files of the laboratory's page. */
#ifndef CV_CLI_PAGES_H
#define CV_CLI_PAGES_H

#include "base/asset.h"

extern const struct asset lab_pages[];

#endif
