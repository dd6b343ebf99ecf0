#include "lab/judge/judge.h"

#include <stdarg.h>
#include <stdio.h>

void verdict_set(struct verdict *verdict, enum verdict_value value, uint64_t now,
                 const char *format, ...) {
    if (verdict->value == VIOLATED) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(verdict->why, sizeof verdict->why, format, arguments);
    va_end(arguments);
    verdict->value = value;
    verdict->at_us = value == VIOLATED ? now : 0;
}
