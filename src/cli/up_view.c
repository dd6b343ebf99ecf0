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

static const char heading[] =
    "server  port   http   state      term    decided    applied  clients  requests/s";

static void print_row(char *to, size_t size, const struct up_server *s, uint64_t now_ms) {
    char decided[32], applied[32], rate[32], http[16] = "-";
    const struct ensemble *e = &s->now;
    if (s->has_http) snprintf(http, sizeof http, "%d", s->http_port);
    int used = snprintf(to, size, "%-6d  %-5d  %-5s  %s", s->number, s->client_port,
                        s->process ? http : "-", server_state(s, now_ms));
    if (!server_answers(s, now_ms)) return;
    int pad = 9 - (int)strlen(e->mode);
    snprintf(to + used, size - (size_t)used, "%*s  %4" PRIu64 "  %9s  %9s  %7" PRIu64 "  %10s",
             pad > 0 ? pad : 0, "", e->term, grouped(decided, e->committed),
             grouped(applied, e->applied), e->clients, grouped(rate, (uint64_t)(s->rate + 0.5)));
}

void view_table(struct up *up, uint64_t now_ms) {
    char row[256];
    puts(heading);
    for (int i = 0; i < up->count; i++) {
        print_row(row, sizeof row, &up->server[i], now_ms);
        puts(row);
    }
    fflush(stdout);
}

/* ---- Lines, for who is no terminal ---- */

static void describe(char *to, size_t size, const struct up_server *s, uint64_t now_ms) {
    const struct ensemble *e = &s->now;
    const char *state = server_state(s, now_ms);
    if (strcmp(state, "starting") == 0)
        snprintf(to, size, "starting, process %d", (int)s->process);
    else if (!server_answers(s, now_ms))
        snprintf(to, size, "%s", state);
    else if (!e->leader)
        snprintf(to, size, "no leader");
    else if (e->leader == s->number)
        snprintf(to, size, "leads in term %" PRIu64, e->term);
    else
        snprintf(to, size, "follows %d in term %" PRIu64, e->leader, e->term);
}

static void show_lines(struct up *up, uint64_t now_ms) {
    char now[sizeof up->server->said];
    for (int i = 0; i < up->count; i++) {
        struct up_server *s = &up->server[i];
        describe(now, sizeof now, s, now_ms);
        if (strcmp(now, s->said) == 0) continue;
        memcpy(s->said, now, sizeof now);
        printf("server %d: %s\n", s->number, now);
        if (!s->process && strstr(s->ended, "failed") && s->lines)
            printf("server %d: %s\n", s->number, s->line[(s->lines - 1) % UP_LINES]);
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

/* One line, not wider than there is room, and nothing left of what was there. */
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
    bytes_add(&c->out, "\033[K", 3); /* first: at the right edge it would take the last letter */
    bytes_add(&c->out, style, strlen(style));
    bytes_add(&c->out, line, (size_t)size);
    bytes_add(&c->out, PLAIN, strlen(PLAIN));
    c->row++;
    if (c->row < c->height) bytes_add(&c->out, "\r\n", 2);
}

static const char *style_of(const struct up_server *s, uint64_t now_ms) {
    const char *state = server_state(s, now_ms);
    if (!s->process) return RED;
    if (s->stopped || strcmp(state, "silent") == 0) return MAGENTA;
    if (strcmp(state, "leader") == 0) return GREEN;
    if (strcmp(state, "follower") == 0) return "";
    return YELLOW;
}

static void draw_log(struct canvas *c, const struct up_server *s, int rows, uint64_t now_ms) {
    static const char rule[] = "----------------------------------------";
    size_t shown = s->lines < UP_LINES ? s->lines : UP_LINES;
    if (rows < 2) return;
    if (shown > (size_t)rows - 1) shown = (size_t)rows - 1;
    draw(c, DIM, "-- server %d, %s %s%s", s->number, server_state(s, now_ms), rule, rule);
    for (size_t i = s->lines - shown; i < s->lines; i++) {
        const char *line = s->line[i % UP_LINES], *style = "";
        bool dated = strlen(line) > 24 && line[10] == 'T' && line[23] == 'Z';
        if (dated) line += 11; /* today's */
        if (strstr(line, "Z warning ")) style = YELLOW;
        if (strstr(line, "Z error ")) style = RED;
        draw(c, style, "%s", line);
    }
    for (size_t i = shown; i < (size_t)rows - 1; i++) draw(c, "", "%s", "");
}

static void draw_all(struct canvas *c, const struct up *up, uint64_t now_ms) {
    enum { ABOVE = 4, BELOW = 2 };
    char row[256];
    draw(c, BOLD, "conclave: %d servers on 127.0.0.1; data in %s", up->count, up->data);
    draw(c, "", "%s", "");
    draw(c, DIM, "%s", heading);
    for (int i = 0; i < up->count; i++) {
        print_row(row, sizeof row, &up->server[i], now_ms);
        draw(c, style_of(&up->server[i], now_ms), "%s", row);
    }
    draw(c, "", "%s", "");
    int rows = (c->height - ABOVE - up->count - BELOW) / up->count;
    for (int i = 0; i < up->count; i++) draw_log(c, &up->server[i], rows, now_ms);
    while (c->row < c->height - BELOW) draw(c, "", "%s", "");
    if (up->ending)
        draw(c, YELLOW, "the servers are ending ...");
    else
        draw(c, YELLOW, "%s", up->message);
    if (up->key)
        draw(c, BOLD, "%c: which server? 1 to %d", up->key, up->count);
    else
        draw(c, "", "k N kill  s N stop  c N continue  r N restart  t N transfer  q quit");
}

static void write_all(const struct bytes *out) {
    for (size_t at = 0; at < out->used;) {
        ssize_t size = write(STDOUT_FILENO, out->at + at, out->used - at);
        if (size <= 0) return;
        at += (size_t)size;
    }
}

/* In one write, so that nobody sees half of it. */
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
    if (up->picture)
        write_all(&(struct bytes){(unsigned char *)OTHER_SCREEN, strlen(OTHER_SCREEN), 0});
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
