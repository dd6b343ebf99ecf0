/* Which word was meant by a mistyped one. */
#ifndef CV_BASE_SPELLING_H
#define CV_BASE_SPELLING_H

/* The Levenshtein distance between two words. */
unsigned word_distance(const char *a, const char *b);

#endif
