/* The layout of a space-time diagram: a line for each process that takes part, a time axis on which
 * long gaps are shortened, and what is drawn on and between the lines. */
#ifndef CV_LAB_SIM_TRACE_SVG_H
#define CV_LAB_SIM_TRACE_SVG_H

#include "lab/sim/trace_standing.h"

enum { DRAWN_MAX = 2000, LABEL_MAX = 48 };

struct moment { /* a time, or one of the steps at that time */
    uint64_t time_us;
    int x;
    bool after_silence; /* the gap before it is drawn shorter than it was */
};

/* The shapes that are drawn; the legend shows those that occur. */
enum shape {
    SHAPE_NONE,
    SHAPE_STANDING, /* spans of a line: what part the process takes in an election */
    SHAPE_WAITING,
    SHAPE_INSIDE,
    SHAPE_LEADS,
    SHAPE_DOWN,
    SHAPE_PAUSED,
    SHAPE_OVERLAP, /* spans of the whole picture: two inside */
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
    SHAPE_REPEATED,  /* one of many: a tick */
    SHAPE_WAITS_FOR, /* after the end of the lines */
    SHAPES,
};

struct span {
    enum shape shape;
    int y, from, to;
    uint32_t term;            /* in which it leads */
    uint32_t max;             /* SHAPE_OVERLAP, SHAPE_RIVALS: how many at most */
    struct standing standing; /* SHAPE_STANDING */
};

struct mark {
    enum shape shape;
    int x, y;
    uint32_t entry;
};

struct arrow {
    enum shape shape;
    int x1, y1, x2, y2;
    uint32_t entry; /* the arrival, or the send when no arrival is drawn */
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
    int *x;          /* by index into `drawn` */
    bool *thin;      /* by index into `drawn`: it gets no room of its own on the time axis */
    size_t drawn_count;
    size_t skipped, total;               /* entries of earlier pages, and of all */
    uint64_t page, pages, violated_page; /* where the first property is violated */
    int width_max;
    bool *folded; /* by entry of the trace; NULL: none is */
    size_t folded_count;
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
    struct mark *state; /* where the shown state of a process changes, when these are few */
    size_t state_count;
    struct label *label; /* one for each mark, then for each arrow, then for each state */
    struct label *round; /* the numbers of rounds, on spans */
    size_t round_count;
    bool occurs[SHAPES], stands[STANDINGS];
};

void layout_open(struct layout *layout, const struct trace *trace, uint64_t page);
void layout_close(struct layout *layout);
/* The x of a time, whether or not something happens then. */
int layout_x(const struct layout *layout, uint64_t time_us);

/* ---- The steps of layout_open ---- */

/* Thins messages of which more than `many` are alike, except the first `few` and the last; returns
 * whether there were any. */
bool layout_thin(struct layout *layout, size_t many, size_t few);
/* Folds the messages of an algorithm that never rests which change nothing and were sent before. */
void layout_fold(struct layout *layout);
void layout_parts(struct layout *layout);  /* span, mark, arrow, state */
void layout_labels(struct layout *layout); /* label, round */
/* The width of an arrow that has room for the list of its message; 0 when it has none. */
int layout_list_width(const struct trace *trace, const struct trace_entry *entry);

/* Whether entry i of the trace is drawn, on this page or another. */
bool layout_draws(const struct layout *layout, size_t i);
/* "[6,0,1]" of "ELECTION process=[P6, P0, P1]"; false when that is too long. */
bool label_list(const char *message, char text[LABEL_MAX]);
/* The index of an entry in `drawn`, or drawn_count. */
size_t layout_find(const struct layout *layout, uint32_t entry);
void *layout_array(size_t count, size_t item);

/* The width of a text in a font of `size` pixels. */
enum { ROUND_SIZE = 9, LABEL_SIZE = 11, HEADING_SIZE = 12 };
int text_width(const char *text, int size);

/* ---- Drawing ---- */

enum { SVG_TEXT_MAX = 120, SVG_COLOURS = 6 };
enum {
    AXIS_BELOW = 56,    /* pixels from the last line to the axis, */
    BAND_ABOVE = 30,    /* from the first line up to the end of a band, */
    HEADINGS_ABOVE = 38 /* and to the headings; labels of the line are below these */
};
extern const char *const svg_colours[SVG_COLOURS]; /* of messages, by kind */

/* The element that a picture begins with, its styles and its shapes, on a white ground. */
void svg_head(int width, int height, FILE *out);
/* Writes a text escaped, and at most `letters_max` characters of it. */
void svg_text(FILE *out, const char *text, size_t letters_max);
void svg_title(FILE *out, int width, const char *title);
void svg_name(FILE *out, const struct trace *trace, cv_pid p);
void svg_label(FILE *out, const char *class, int x, int y, const char *text);
/* Writes lines of a text, wrapped to the width, from y on, or only counts them when there is no
 * file.  Returns how many there are. */
enum { SVG_LINE = 18 };
int svg_paragraph(FILE *out, const char *class, int x, int y, int width, const char *text);
/* "P1 waits for P3 at P4". */
void svg_wait(FILE *out, const struct trace *trace, const struct trace_wait *wait);
/* What is written above the lines: where a property is violated, what bands are. */
void svg_headings(const struct layout *layout, FILE *out);
/* Draws who waits for whom, or only measures that; returns its width. */
int svg_waits(const struct layout *layout, FILE *out);
void svg_parts(const struct layout *layout, FILE *out);

#endif
