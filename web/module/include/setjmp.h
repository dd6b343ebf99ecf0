/* Nothing is caught: what is broken ends the module. */
#ifndef CV_MODULE_SETJMP_H
#define CV_MODULE_SETJMP_H

typedef int jmp_buf[1];
#define setjmp(BUFFER)         ((BUFFER)[0] = 0)
#define longjmp(BUFFER, VALUE) __builtin_trap()

#endif
