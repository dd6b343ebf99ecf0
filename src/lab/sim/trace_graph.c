/* A run as drawings of its network in SVG: the page, its captions and its legend. */
#include "lab/sim/trace_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "lab/sim/trace_graph_draw.h"
#include "language/language.h"

enum {
    FRAMES_MAX = 12, /* of a page, */
    FRAMES_FEW = 6,  /* when they are large */
    FRAME_LARGE = 400,
    PAGE_WIDTH = 1240,
    WIDTH_MIN = 560,
    MARGIN = 20,
    TITLE = 50,   /* above the drawings */
    CAPTION = 44, /* above one drawing */
    FOOT = 12,    /* below one drawing, for what is written below its processes */
    GAP = 12,     /* between two */
    LEGEND_LINE = 22,
};

/* ---- Captions ---- */

static char *number_of(size_t index, char buffer[8]) {
    if (index < 26)
        snprintf(buffer, 8, "%c", (char)('a' + index));
    else
        snprintf(buffer, 8, "%zu", index + 1);
    return buffer;
}

/* The drawing of the stage in which the first property is violated. */
static size_t violated_frame(const struct graph_picture *picture) {
    size_t last = 0;
    for (size_t i = 0; i + 1 < picture->frame_count; i++)
        if (picture->stage[picture->frame[i].stage - 1].from_us <= picture->trace->violated_us)
            last = i;
    return last;
}

static void put_caption(const struct graph_picture *picture, size_t index, int y, FILE *out) {
    const struct frame *frame = &picture->frame[index];
    const struct stage *stage = frame->stage ? &picture->stage[frame->stage - 1] : NULL;
    const struct trace *trace = picture->trace;
    char text[160], number[8], from[32], to[32], sides[48];
    const char *what = !stage         ? _("the end")
                       : frame->still ? _("the edges have changed")
                                      : language_name(trace->algorithm->messages[stage->kind].name);
    int used = 0;
    snprintf(text, sizeof text, "%s  %s", number_of(index, number), what);
    svg_label(out, "caption", 10, y, text);
    if (*trace->violated && index == violated_frame(picture))
        svg_label(out, "wrong", picture->size - 36, y, _("violated"));
    text[0] = 0;
    if (stage && !frame->still) {
        if (stage->round && !trace->network.complete)
            used = snprintf(text, sizeof text, _("round %u, "), stage->round);
        format_duration(from, sizeof from, (double)stage->from_us);
        format_duration(to, sizeof to, (double)stage->to_us);
        used +=
            snprintf(text + used, sizeof text - (size_t)used,
                     stage->messages == 1 ? _("%u message, %s to %s") : _("%u messages, %s to %s"),
                     stage->messages, from, to);
    }
    if (used) svg_label(out, "legend", 10, y + 16, text);
    if (!frame->folded && !frame->split) return;
    if (frame->split)
        snprintf(text, sizeof text, _("network split: %s"),
                 trace_sides(trace, &trace->entry[frame->split], sides, sizeof sides));
    else
        snprintf(text, sizeof text, _("after %u more like those before, folded"), frame->folded);
    svg_label(out, "legend", 10, y + (used ? 32 : 16), text);
}

/* ---- The legend ---- */

struct sample {
    char shape[160];
    char text[STANDING_NAME_MAX];
};

static void add_sample(struct sample *samples, size_t *count, bool occurs, const char *text,
                       const char *shape, const char *colour) {
    if (!occurs) return;
    struct sample *sample = &samples[(*count)++];
    snprintf(sample->text, sizeof sample->text, "%s", text);
    if (colour)
        snprintf(sample->shape, sizeof sample->shape, shape, colour);
    else
        snprintf(sample->shape, sizeof sample->shape, "%s", shape);
}

static size_t make_samples(const struct trace *trace, const struct graph_legend *legend,
                           struct sample *samples) {
    static const char node[] = "<circle class=\"node\" r=\"8\" fill=\"%s\"/>";
    char name[STANDING_NAME_MAX];
    size_t count = 0;
    for (uint8_t s = 0; s < STANDINGS; s++)
        add_sample(samples, &count, legend->standing[s], standing_name(trace, s, name), node,
                   standing_colour(s, 2));
    add_sample(samples, &count, legend->waiting, _("waits"), node, COLOUR_WAITING);
    add_sample(samples, &count, legend->inside, _("inside"), node, COLOUR_INSIDE);
    add_sample(samples, &count, legend->together, _("inside with another"), node, COLOUR_TOGETHER);
    add_sample(samples, &count, legend->down, _("is down"), "<circle class=\"node dead\" r=\"8\"/>",
               NULL);
    add_sample(samples, &count, legend->paused, _("pauses"),
               "<circle class=\"node\" r=\"8\" fill=\"url(#hatching)\"/>", NULL);
    add_sample(samples, &count, legend->message, _("message"),
               "<path class=\"message\" stroke=\"%s\" marker-end=\"url(#head5)\" d=\"M-12 0H12\"/>",
               svg_colours[5]); /* grey: each kind has a colour of its own */
    add_sample(samples, &count, legend->lost, _("lost"),
               "<path class=\"lost\" d=\"M-12 0H8\"/><use xlink:href=\"#cross\" x=\"8\"/>", NULL);
    add_sample(samples, &count, legend->quorum, _("a quorum"),
               "<rect class=\"quorum\" x=\"-11\" y=\"-6\" width=\"22\" height=\"12\" fill=\"%s\"/>",
               svg_colours[0]);
    add_sample(samples, &count, legend->cut, _("cut"), "<path class=\"edge cut\" d=\"M-12 0H12\"/>",
               NULL);
    add_sample(samples, &count, legend->waits, _("waits for"),
               "<path class=\"waits-for\" marker-end=\"url(#waits-head)\" d=\"M-12 0H12\"/>", NULL);
    return count;
}

/* Writes the legend from y on, or only measures it when there is no file. */
static int put_legend(const struct trace *trace, const struct graph_legend *legend, int width,
                      int y, FILE *out) {
    struct sample samples[STANDINGS + 12];
    size_t count = make_samples(trace, legend, samples);
    int x = MARGIN, height = count ? LEGEND_LINE : 0;
    for (size_t i = 0; i < count; i++) {
        int room = 52 + text_width(samples[i].text, 11);
        if (x > MARGIN && x + room > width) x = MARGIN, height += LEGEND_LINE;
        if (out) {
            fprintf(out, "<g transform=\"translate(%d %d)\">%s</g>", x + 12,
                    y + height - LEGEND_LINE, samples[i].shape);
            svg_label(out, "legend", x + 32, y + height - LEGEND_LINE + 4, samples[i].text);
        }
        x += room;
    }
    return height;
}

/* ---- The page ---- */

void graph_open(struct graph_picture *picture, const struct trace *trace) {
    uint32_t processes = trace->roster.processes;
    *picture = (struct graph_picture){.trace = trace};
    picture->limit = layout_array(processes, sizeof *picture->limit);
    picture->look = layout_array(processes, sizeof *picture->look);
    picture->standing = layout_array(processes, sizeof *picture->standing);
    picture->event = layout_array(processes, sizeof *picture->event);
    if (!trace->network.complete)
        picture->heard = layout_array(trace->network.offset[processes + 1], 1);
    graph_place(picture);
    stages_find(picture);
}

void graph_close(struct graph_picture *picture) {
    free(picture->stage_of);
    free(picture->stage);
    free(picture->frame);
    free(picture->x);
    free(picture->y);
    free(picture->edge);
    free(picture->limit);
    free(picture->look);
    free(picture->standing);
    free(picture->event);
    free(picture->heard);
}

static uint64_t columns_of(const struct graph_picture *picture, uint64_t frames) {
    uint64_t most = (uint64_t)(PAGE_WIDTH / (picture->size + GAP));
    uint64_t rows = (frames + most - 1) / most;
    return (frames + rows - 1) / rows;
}

static uint64_t pages_of(const struct graph_picture *picture, size_t most) {
    return (picture->frame_count + most - 1) / most;
}

/* What the page does not show. */
static void write_remarks(const struct graph_picture *picture, uint64_t page, size_t most,
                          FILE *out) {
    uint32_t processes = picture->trace->roster.processes;
    uint64_t pages = pages_of(picture, most), violated = violated_frame(picture) / most + 1;
    if (pages > 1)
        fprintf(out, _("Page %llu of %llu, of %zu drawings in all; --page %llu shows %s.\n"),
                (unsigned long long)page, (unsigned long long)pages, picture->frame_count,
                (unsigned long long)(page < pages ? page + 1 : 1),
                page < pages ? _("what follows") : _("the beginning"));
    if (*picture->trace->violated && page != violated)
        fprintf(out, _("The violation is on page %llu.\n"), (unsigned long long)violated);
    if (picture->nodes < processes)
        fprintf(out, _("Only the first %u of %u processes are drawn.\n"), picture->nodes,
                processes);
    if (picture->trace->full)
        fprintf(out, _("The run went on: its trace ends after %d entries.\n"), TRACE_ENTRIES_MAX);
}

static void put_frames(struct graph_picture *picture, size_t first, size_t frames, uint64_t columns,
                       struct graph_legend *legend, FILE *out) {
    int wide = picture->size + GAP, high = CAPTION + picture->size + FOOT + GAP;
    for (size_t i = 0; i < frames; i++) {
        int x = MARGIN + (int)(i % columns) * wide, y = TITLE + (int)(i / columns) * high;
        fprintf(out,
                "<g transform=\"translate(%d %d)\"><rect class=\"frame\" width=\"%d\""
                " height=\"%d\" rx=\"6\"/>\n",
                x, y, picture->size, high - GAP);
        put_caption(picture, first + i, 20, out);
        fprintf(out, "<g transform=\"translate(0 %d)\">\n", CAPTION);
        graph_draw(picture, &picture->frame[first + i], legend, out);
        fputs("</g></g>\n", out);
    }
}

void trace_write_graph(const struct trace *trace, const char *title, uint64_t page, FILE *out) {
    struct graph_picture picture;
    struct graph_legend legend = {0};
    char *drawings = NULL, *remarks = NULL;
    size_t drawn = 0, remarked = 0;
    graph_open(&picture, trace);
    size_t most = picture.size < FRAME_LARGE ? FRAMES_MAX : FRAMES_FEW;
    uint64_t pages = pages_of(&picture, most);
    if (page > pages) page = pages;
    size_t first = (page - 1) * most, frames = picture.frame_count - first;
    if (frames > most) frames = most;
    uint64_t columns = columns_of(&picture, frames);
    FILE *memory = open_memstream(&drawings, &drawn);
    cv_assert(memory);
    put_frames(&picture, first, frames, columns, &legend, memory);
    fclose(memory);
    memory = open_memstream(&remarks, &remarked);
    cv_assert(memory);
    write_remarks(&picture, page, most, memory);
    fclose(memory);
    int rows = (int)((frames + columns - 1) / columns);
    int width = 2 * MARGIN + (int)columns * (picture.size + GAP) - GAP;
    if (width < WIDTH_MIN) width = WIDTH_MIN;
    int y = TITLE + rows * (CAPTION + picture.size + FOOT + GAP) + 14;
    int text = width - 2 * MARGIN;
    int lines = svg_paragraph(NULL, "", 0, 0, text, trace->violated) +
                svg_paragraph(NULL, "", 0, 0, text, remarks);
    int height = y + put_legend(trace, &legend, width, y, NULL) + SVG_LINE * lines + 4;
    svg_head(width, height, out);
    svg_title(out, width, title);
    fputs(drawings, out);
    y += put_legend(trace, &legend, width, y, out) + 4;
    y += SVG_LINE * svg_paragraph(out, "verdict", MARGIN, y, text, trace->violated);
    svg_paragraph(out, "legend", MARGIN, y, text, remarks);
    fputs("</svg>\n", out);
    free(drawings);
    free(remarks);
    graph_close(&picture);
}
