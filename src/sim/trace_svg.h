/* The parts of a space-time diagram and where they stand: a line for each process that takes part,
 * a time axis on which long silences are short, and what is drawn on and between the lines. */
#ifndef CV_SIM_TRACE_SVG_H
#define CV_SIM_TRACE_SVG_H

#include "sim/trace.h"

enum { DRAWN_MAX = 2000, LABEL_MAX = 48 };

struct moment { /* a time, or one of the steps that happen at it */
    uint64_t time_us;
    int x;
    bool after_silence; /* the time before it is drawn shorter than it was */
};

/* All that is drawn has one of these shapes; the legend shows those that occur. */
enum shape {
    SHAPE_NONE,
    SHAPE_WAITING, /* stretches of a line */
    SHAPE_INSIDE,
    SHAPE_LEADS,
    SHAPE_DOWN,
    SHAPE_PAUSED,
    SHAPE_OVERLAP, /* stretches of the whole picture: two inside */
    SHAPE_RIVALS,  /* two lead in the same term */
    SHAPE_SPLIT,
    SHAPE_CRASH, /* marks on a line */
    SHAPE_SAVED,
    SHAPE_AMNESIA,
    SHAPE_TIMER,
    SHAPE_CHOICE,
    SHAPE_WRITE,
    SHAPE_REFUSED,
    SHAPE_CAMPAIGN,
    SHAPE_ELECTED,
    SHAPE_FOLLOWS,
    SHAPE_LEADERLESS,
    SHAPE_SUSPECT,
    SHAPE_TRUST,
    SHAPE_MESSAGE, /* arrows */
    SHAPE_LOST,
    SHAPE_UNDER_WAY,
    SHAPE_REPEATED, /* one of many: a tick */
    SHAPES,
};

struct span {
    enum shape shape;
    int y, from, to;
    uint32_t term; /* in which it leads */
    uint32_t most; /* SHAPE_OVERLAP, SHAPE_RIVALS: how many at the most */
};

struct mark {
    enum shape shape;
    int x, y;
    uint32_t entry;
};

struct arrow {
    enum shape shape;
    int x1, y1, x2, y2;
    uint32_t entry; /* the arrival, or the sending when no arrival is drawn */
};

struct label {
    double x, y;          /* its middle */
    double right, down;   /* the direction in which it is read, of length 1 */
    double half;          /* half of its length */
    char text[LABEL_MAX]; /* empty: there was no room */
};

struct layout {
    const struct trace *trace;
    uint32_t *drawn; /* entries */
    int *x;          /* by place in `drawn` */
    bool *thin;      /* by place in `drawn`: time does not stretch for it */
    size_t drawn_count, left_out;
    int *y; /* of a process's line, by pid; 0: it has none */
    uint32_t lines;
    int distance; /* between two lines */
    struct moment *moment;
    size_t moment_count;
    uint64_t typical_us; /* what a message takes */
    double pixels_per_us;
    int unit; /* how wide a typical message is */
    int left, right, top, bottom;
    struct span *span;
    struct mark *mark;
    struct arrow *arrow;
    size_t span_count, mark_count, arrow_count;
    struct label *label; /* one for each mark, then one for each arrow */
    bool occurs[SHAPES];
};

void layout_open(struct layout *layout, const struct trace *trace);
void layout_close(struct layout *layout);
/* Where a time stands, whether or not something happens at it. */
int layout_x(const struct layout *layout, uint64_t time_us);

/* ---- The pieces of layout_open ---- */

/* Thins messages of which there are more than `many` alike, but for the first `few` and the last;
 * returns whether there were any. */
bool layout_thin(struct layout *layout, size_t many, size_t few);
void layout_parts(struct layout *layout);  /* span, mark, arrow */
void layout_labels(struct layout *layout); /* label */

/* The place in `drawn` of an entry, or drawn_count. */
size_t layout_find(const struct layout *layout, uint32_t entry);
void *layout_array(size_t count, size_t item);

/* How wide a text is in the small letters of labels, and in a font of `size` pixels. */
enum { LABEL_SIZE = 11 };
int text_width(const char *text, int size);

/* ---- Drawing ---- */

enum { SVG_TEXT_MAX = 120, SVG_COLOURS = 6 };
extern const char *const svg_colours[SVG_COLOURS]; /* of messages, by kind */

void svg_label(FILE *out, const char *class, int x, int y, const char *text);
void svg_parts(const struct layout *layout, FILE *out);

#endif
