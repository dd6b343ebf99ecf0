/* Numbers as people write them.  Each parser returns 0, or -1 and leaves the result unchanged. */
#ifndef CV_BASE_PARSE_H
#define CV_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* A whole number, decimal or 0x…, with nothing before or after it. */
int parse_u64(const char *text, uint64_t *result);
/* A finite real number. */
int parse_real(const char *text, double *result);
/* A real number from 0 to 1. */
int parse_probability(const char *text, double *result);
/* "250us", "1.5ms", "3s", "2min", "1h", "10d", or "0"; in whole microseconds. */
int parse_duration(const char *text, uint64_t *us);
/* How often: "0.2/s", "3/min", "12/hour"; in events per second. */
int parse_rate(const char *text, double *per_second);
/* What part of the time: a probability, or "3s/hour", "1min/10d". */
int parse_fraction(const char *text, double *result);

/* An amount of memory: "8G", "512M", "64k", "4096"; in bytes. */
int parse_bytes(const char *text, uint64_t *result);

/* The shortest text that parse_real reads back as the same number. */
char *format_real(char *buffer, size_t size, double value);
/* Microseconds as parse_duration reads them: "20ms". */
char *format_us(char *buffer, size_t size, uint64_t us);
/* A duration for people, in the largest unit that keeps it at or above one: "1.5 ms". */
char *format_duration(char *buffer, size_t size, double us);
/* An amount of memory for people: "1.5 GiB". */
char *format_bytes(char *buffer, size_t size, double bytes);

#endif
