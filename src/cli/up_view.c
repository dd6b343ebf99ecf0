#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/up.h"

/* ---- Numbers ---- */

/* 1234567 is easier to read as 1,234,567. */
static const char *grouped(char text[32], uint64_t value) {
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, value), at = 0;
    for (int i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

/* ---- The table ---- */

static const char peers_heading[] = "peer    port   state";
static const char heading[] =
    "server  port   http   state      term  committed    applied  clients  requests/s";

static const char *heading_of(const struct up *up) {
    return up->kind->speaks ? peers_heading : heading;
}

/* What a peer said last, and from whom it is cut off. */
static void print_state(char *to, size_t size, const struct up *up, const struct up_server *s,
                        uint64_t now_ms) {
    char parted[48];
    server_parted(up, s, parted, sizeof parted);
    snprintf(to, size, "%s%s%s", server_state(s, now_ms), *parted ? "; cut off from " : "", parted);
}

static void print_row(char *to, size_t size, const struct up *up, const struct up_server *s,
                      uint64_t now_ms) {
    char committed[32], applied[32], rate[32], http[16] = "-";
    const struct ensemble_view *e = &s->status;
    if (s->kind->speaks) {
        int head = snprintf(to, size, "%-6d  %-5d  ", s->number, s->client_port);
        print_state(to + head, size - (size_t)head, up, s, now_ms);
        return;
    }
    if (s->has_http) snprintf(http, sizeof http, "%d", s->http_port);
    int used = snprintf(to, size, "%-6d  %-5d  %-5s  %s", s->number, s->client_port,
                        s->process ? http : "-", server_state(s, now_ms));
    if (!server_answers(s, now_ms)) return;
    int pad = 9 - (int)strlen(server_state(s, now_ms));
    snprintf(to + used, size - (size_t)used, "%*s  %4" PRIu64 "  %9s  %9s  %7" PRIu64 "  %10s",
             pad > 0 ? pad : 0, "", e->term, grouped(committed, e->committed),
             grouped(applied, e->applied), e->clients, grouped(rate, (uint64_t)(s->rate + 0.5)));
}

void view_table(struct up *up, uint64_t now_ms) {
    char row[256];
    puts(heading_of(up));
    for (int i = 0; i < up->count; i++) {
        print_row(row, sizeof row, up, &up->server[i], now_ms);
        puts(row);
    }
    fflush(stdout);
}

/* ---- Lines, if there is no terminal ---- */

static void describe(char *to, size_t size, const struct up *up, const struct up_server *s,
                     uint64_t now_ms) {
    const struct ensemble_view *e = &s->status;
    const char *state = server_state(s, now_ms);
    if (strcmp(state, "starting") == 0)
        snprintf(to, size, "starting, process %d", (int)s->process);
    else if (s->kind->speaks)
        print_state(to, size, up, s, now_ms);
    else if (!server_answers(s, now_ms))
        snprintf(to, size, "%s", state);
    else if (e->removed)
        snprintf(to, size, "is no longer a member");
    else if (!e->leader)
        snprintf(to, size, "no leader");
    else if (e->leader == s->number)
        snprintf(to, size, "leads in term %" PRIu64, e->term);
    else
        snprintf(to, size, "follows %d in term %" PRIu64, e->leader, e->term);
}

static void show_lines(struct up *up, uint64_t now_ms) {
    char now[sizeof up->server->printed];
    for (int i = 0; i < up->count; i++) {
        struct up_server *s = &up->server[i];
        describe(now, sizeof now, up, s, now_ms);
        if (strcmp(now, s->printed) == 0) continue;
        memcpy(s->printed, now, sizeof now);
        printf("%s %d: %s\n", up->kind->noun, s->number, now);
        if (!s->process && strstr(s->ended, "failed") && s->lines)
            printf("%s %d: %s\n", up->kind->noun, s->number, s->line[(s->lines - 1) % UP_LINES]);
    }
    fflush(stdout);
}

/* ---- The picture, for a terminal ---- */

#define BOLD    "\033[1m"
#define DIM     "\033[2m"
#define RED     "\033[31m"
#define GREEN   "\033[1;32m"
#define YELLOW  "\033[33m"
#define MAGENTA "\033[35m"
#define PLAIN   "\033[0m"

struct canvas {
    struct bytes out;
    int width, height, row;
};

/* Draws one line, cut at the right edge, over what was there. */
__attribute__((format(printf, 3, 4))) static void draw(struct canvas *c, const char *style,
                                                       const char *format, ...) {
    char line[512];
    va_list arguments;
    if (c->row >= c->height) return;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size >= (int)sizeof line) size = sizeof line - 1;
    if (size > c->width) size = c->width;
    bytes_add(&c->out, "\033[K", 3); /* first: at the right edge it would erase the last letter */
    bytes_add(&c->out, style, strlen(style));
    bytes_add(&c->out, line, (size_t)size);
    bytes_add(&c->out, PLAIN, strlen(PLAIN));
    c->row++;
    if (c->row < c->height) bytes_add(&c->out, "\r\n", 2);
}

static const char *style_of(const struct up_server *s, uint64_t now_ms) {
    const char *state = server_state(s, now_ms);
    if (!s->process) return RED;
    if (s->stopped || strcmp(state, "no answer") == 0) return MAGENTA;
    if (strcmp(state, "leader") == 0 || strncmp(state, "inside", 6) == 0 ||
        strncmp(state, "leads", 5) == 0)
        return GREEN;
    if (strcmp(state, "follower") == 0 || strncmp(state, "follows", 7) == 0 ||
        strcmp(state, "idle") == 0 || strcmp(state, "serves") == 0)
        return "";
    return YELLOW;
}

/* In either format of the log. */
static bool is_of_level(const char *line, const char *level) {
    char text[32], json[32];
    snprintf(text, sizeof text, "Z %s ", level);
    snprintf(json, sizeof json, "Z\",\"level\":\"%s\"", level);
    return strstr(line, text) || strstr(line, json);
}

static void draw_log(struct canvas *c, const struct up_server *s, int rows, uint64_t now_ms) {
    char rule[512];
    size_t shown = s->lines < UP_LINES ? s->lines : UP_LINES;
    if (rows < 2) return;
    if (shown > (size_t)rows - 1) shown = (size_t)rows - 1;
    memset(rule, '-', sizeof rule - 1);
    rule[sizeof rule - 1] = 0;
    draw(c, DIM, "-- %s %d, %s %s", s->kind->noun, s->number, server_state(s, now_ms), rule);
    for (size_t i = s->lines - shown; i < s->lines; i++) {
        const char *line = s->line[i % UP_LINES], *style = "";
        bool dated = strlen(line) > 24 && line[10] == 'T' && line[23] == 'Z';
        if (dated) line += 11; /* the date */
        if (is_of_level(line, "warning")) style = YELLOW;
        if (is_of_level(line, "error")) style = RED;
        draw(c, style, "%s", line);
    }
    for (size_t i = shown; i < (size_t)rows - 1; i++) draw(c, "", "%s", "");
}

/* More than there are lines: several beside each other, without their logs. */
static void draw_columns(struct canvas *c, const struct up *up, int rows, uint64_t now_ms) {
    if (rows < 1) return;
    int columns = (up->count + rows - 1) / rows, width = c->width / columns;
    for (int row = 0; row < rows; row++) {
        char line[512] = "", state[128];
        int used = 0;
        for (int i = row; i < up->count && used < (int)sizeof line - 1; i += rows) {
            print_state(state, sizeof state, up, &up->server[i], now_ms);
            int size = snprintf(line + used, sizeof line - (size_t)used, "%3d %-*.*s ", i + 1,
                                width > 6 ? width - 5 : 1, width > 6 ? width - 5 : 1, state);
            used += size;
        }
        draw(c, "", "%s", line);
    }
}

static const char *title(const struct up *up, char *to, size_t size) {
    snprintf(to, size, "conclave: %d %ss on 127.0.0.1%s%s; data in %s", up->count, up->kind->noun,
             up->group ? ", " : "", up->group ? up->group : "", up->data);
    return to;
}

/* How many letters of these keys, which two spaces part, go on one line. */
static int keys_that_fit(const char *keys, int width) {
    int end = (int)strlen(keys);
    if (end <= width) return end;
    for (end = width; end > 2 && strncmp(keys + end - 2, "  ", 2) != 0;) end--;
    return end > 2 ? end : width;
}

/* Draws the keys on as many lines as they take, because none may be cut off, or only counts the
 * lines. */
static int draw_keys(struct canvas *c, const struct up *up, bool count) {
    char keys[256];
    int lines = 0;
    command_words(up, true, keys, sizeof keys);
    for (const char *at = keys; *at; lines++) {
        int size = keys_that_fit(at, c->width);
        if (!count) draw(c, "", "%.*s", size, at);
        at += size;
    }
    return lines;
}

static void draw_all(struct canvas *c, const struct up *up, uint64_t now_ms) {
    enum { ABOVE = 4 };
    char row[1280];
    int below = 1 + draw_keys(c, up, true);
    draw(c, BOLD, "%s", title(up, row, sizeof row));
    draw(c, "", "%s", "");
    if (up->count <= c->height - ABOVE - below) {
        draw(c, DIM, "%s", heading_of(up));
        for (int i = 0; i < up->count; i++) {
            print_row(row, sizeof row, up, &up->server[i], now_ms);
            draw(c, style_of(&up->server[i], now_ms), "%s", row);
        }
        draw(c, "", "%s", "");
        int rows = (c->height - ABOVE - up->count - below) / up->count;
        for (int i = 0; i < up->count; i++) draw_log(c, &up->server[i], rows, now_ms);
    } else {
        draw_columns(c, up, c->height - ABOVE - below, now_ms);
    }
    while (c->row < c->height - below) draw(c, "", "%s", "");
    if (up->ending)
        draw(c, YELLOW, "the %ss are ending ...", up->kind->noun);
    else
        draw(c, YELLOW, "%s", up->message);
    if (up->typed)
        draw(c, BOLD, "%c: which %s? 1 to %d%s: %s", up->typed, up->kind->noun, up->count,
             up->count > 9 ? ", then Enter" : "", up->digits);
    else
        draw_keys(c, up, false);
}

static void write_all(const struct bytes *out) {
    for (size_t at = 0; at < out->used;) {
        ssize_t size = write(STDOUT_FILENO, out->at + at, out->used - at);
        if (size <= 0) return;
        at += (size_t)size;
    }
}

/* One write, so that half a picture is never seen. */
static void show_picture(const struct up *up, uint64_t now_ms) {
    struct winsize window = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    struct canvas c = {.width = window.ws_col ? window.ws_col : 80,
                       .height = window.ws_row ? window.ws_row : 24};
    bytes_add(&c.out, "\033[H", 3);
    draw_all(&c, up, now_ms);
    bytes_add(&c.out, "\033[J", 3);
    write_all(&c.out);
    bytes_close(&c.out);
}

/* ---- Either ---- */

#define OTHER_SCREEN "\033[?1049h\033[?25l"
#define FIRST_SCREEN "\033[?25h\033[?1049l"

void view_open(struct up *up) {
    char row[1280];
    if (up->picture)
        write_all(&(struct bytes){(unsigned char *)OTHER_SCREEN, strlen(OTHER_SCREEN), 0});
    else
        puts(title(up, row, sizeof row));
}

void view_show(struct up *up, uint64_t now_ms) {
    if (up->picture)
        show_picture(up, now_ms);
    else
        show_lines(up, now_ms);
}

void view_close(struct up *up) {
    if (up->picture)
        write_all(&(struct bytes){(unsigned char *)FIRST_SCREEN, strlen(FIRST_SCREEN), 0});
}
