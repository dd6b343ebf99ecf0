/* What `conclave check ricart-agrawala --processes N --entries ENTRIES` explores, for SPIN: the
 * same states and the same steps, in as few bytes as we know how, to be timed side by side.
 *
 *   spin -DN=3 -DENTRIES=2 -a ricart_agrawala.pml
 *   gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c && ./pan
 *
 * An event - a delivery, an acquire, a release - is one d_step.  Where a process stands is its
 * control state, so SPIN looks for deadlocks too: only who is idle may rest for ever.
 *
 * Messages in flight are a bag.  Nobody asks again before everyone has answered, so of each kind
 * there is one at most from one process to another: a slot for each, 0 when empty, is the bag, and
 * equal bags have equal bytes.  The assertion in `send` sees to that.  With SPIN's channels
 * instead the states are as many and three times as long.  Its partial order reduction leaves
 * nothing out either way, since everyone may hear from everyone at any time. */
#ifndef N
#define N 3
#endif
#ifndef ENTRIES
#define ENTRIES 2
#endif
#if N < 2 || N > 5
#error "2 to 5 processes"
#endif
/* The bound on the clock that is saved ahead; above all clocks here, as ours is, but in a byte. */
#define CLOCK_AHEAD 100

#define SLOT(FROM, TO) ((FROM) * N + (TO))
byte request[N * N]; /* the clock of the REQUEST in flight */
byte ok[N * N];      /* the clock of the request that the OK in flight answers */
byte inside;         /* how many */

hidden byte i, clock_in; /* meaningless between steps */

inline send(slot, value) {
    assert(slot == 0);
    slot = value
}

inline move_clock(to) {
    if
    :: clock < to -> clock = to
    :: else
    fi;
    if
    :: clock > bound -> bound = clock + CLOCK_AHEAD
    :: else
    fi
}

inline acquire() {
    left--;
    move_clock(clock + 1);
    asked = clock;
    missing = N - 1;
    for (i : 0 .. N - 1) {
        if
        :: i != _pid -> send(request[SLOT(_pid, i)], asked)
        :: else
        fi
    }
    i = 0 /* a d_step cannot end with a loop */
}

inline release() {
    inside--;
    for (i : 0 .. N - 2) {
        if
        :: deferred[i] ->
            send(ok[SLOT(_pid, deferred[i] - 1)], seen[deferred[i] - 1]);
            deferred[i] = 0
        :: else -> break
        fi
    }
    i = 0
}

inline on_request(p, comes_first) {
    clock_in = request[SLOT(p, _pid)];
    request[SLOT(p, _pid)] = 0;
    if
    :: clock_in > seen[p] ->
        seen[p] = clock_in;
        move_clock(clock_in);
        if
        :: !(comes_first) -> send(ok[SLOT(_pid, p)], clock_in)
        :: else ->
            i = 0;
            do
            :: deferred[i] && deferred[i] != p + 1 -> i++
            :: else -> break
            od;
            deferred[i] = p + 1
        fi
    :: else /* a duplicate */
    fi
}

/* The OK that was missing, and any other. */
#define COUNTS(P) (ok[SLOT(P, _pid)] == asked && allowed[P] != asked)
#define LAST(P) (ok[SLOT(P, _pid)] && COUNTS(P) && missing == 1)

inline on_last_ok(p) {
    ok[SLOT(p, _pid)] = 0;
    allowed[p] = asked;
    missing = 0;
    inside++;
    assert(inside == 1)
}

inline on_ok(p) {
    if
    :: COUNTS(p) ->
        allowed[p] = asked;
        missing--
    :: else
    fi;
    ok[SLOT(p, _pid)] = 0
}

/* What may arrive from P. */
#define IDLE(P)                                                                                    \
    :: d_step { request[SLOT(P, _pid)] -> on_request(P, false) }                                   \
    :: d_step { ok[SLOT(P, _pid)] -> ok[SLOT(P, _pid)] = 0 }
#define WAITING(P)                                                                                 \
    :: d_step {                                                                                    \
            request[SLOT(P, _pid)] ->                                                              \
            on_request(P, asked < clock_in || (asked == clock_in && _pid < P))                     \
        }                                                                                          \
    :: d_step { ok[SLOT(P, _pid)] && !LAST(P) -> on_ok(P) }                                        \
    :: d_step { LAST(P) -> on_last_ok(P) } -> goto enter
#define INSIDE(P)                                                                                  \
    :: d_step { request[SLOT(P, _pid)] -> on_request(P, true) }                                    \
    :: d_step { ok[SLOT(P, _pid)] -> ok[SLOT(P, _pid)] = 0 }

#if N == 2
#define FROM_ANYONE(PHASE) PHASE(0) PHASE(1)
#elif N == 3
#define FROM_ANYONE(PHASE) PHASE(0) PHASE(1) PHASE(2)
#elif N == 4
#define FROM_ANYONE(PHASE) PHASE(0) PHASE(1) PHASE(2) PHASE(3)
#else
#define FROM_ANYONE(PHASE) PHASE(0) PHASE(1) PHASE(2) PHASE(3) PHASE(4)
#endif

active [N] proctype competitor() {
    byte left = ENTRIES;
    byte bound, clock, asked, missing;
    byte deferred[N - 1]; /* first come first; a process is its number and 1, and 0 is nobody */
    byte seen[N];         /* the newest request of each */
    byte allowed[N];      /* my newest request that each said OK to */

end_idle:
    do
    :: d_step { left -> acquire() } -> break
    FROM_ANYONE(IDLE)
    od;
    do
    FROM_ANYONE(WAITING)
    od;
enter:
    do
    :: d_step { true -> release() } -> goto end_idle
    FROM_ANYONE(INSIDE)
    od
}
