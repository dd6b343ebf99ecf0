/* An invariant that is checked in every build: a broken one ends the program at once, because a
 * coordination service in an unknown state is worse than none.  The condition has no side effects.
 */
#ifndef CV_BASE_ASSERT_H
#define CV_BASE_ASSERT_H

_Noreturn void cv_broken(const char *what, const char *file, int line);

#define cv_assert(CONDITION) ((CONDITION) ? (void)0 : cv_broken(#CONDITION, __FILE__, __LINE__))

#endif
