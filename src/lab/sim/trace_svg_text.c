/* Text in SVG: how wide it is, and how it is written. */
#include <string.h>

#include "base/utf8.h"
#include "lab/sim/trace_svg.h"

int text_width(const char *text, int size) {
    /* Of the letters from ' ' to '~' in DejaVu Sans, in hundredths of its size. */
    static const unsigned char widths[] = {
        32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36,  32, 34, 64, 64, 64,
        64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63,
        58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63,  61, 73, 68, 99, 69,
        61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35,  63, 63, 28, 28, 58,
        28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59,  52, 64, 34, 64, 84,
    };
    enum { OTHER = 63 }; /* most letters with accents are no wider */
    int width = 0;
    for (uint32_t code; (code = utf8_next(&text));)
        width += code >= ' ' && code <= '~' ? widths[code - ' '] : OTHER;
    return width * size / 100;
}

void svg_text(FILE *out, const char *text, size_t letters_max) {
    size_t letters = 0;
    for (const char *at = text, *next = text; *at; at = next) {
        uint32_t code = utf8_next(&next);
        if (letters++ == letters_max) {
            fputs("...", out);
            return;
        }
        if (code == '&' || code == '<' || code == '>' || code == '"')
            fprintf(out, "&#%u;", code);
        else if (code < ' ' || code == 0x7f || code == UTF8_BROKEN)
            fputc(code == UTF8_BROKEN ? '?' : ' ', out);
        else
            fwrite(at, 1, (size_t)(next - at), out);
    }
}

void svg_label(FILE *out, const char *class, int x, int y, const char *text) {
    fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    svg_text(out, text, SVG_TEXT_MAX);
    fputs("</text>\n", out);
}

/* Smaller where it is too long for the picture. */
void svg_title(FILE *out, int width, const char *title) {
    enum { X = 20, SIZE = 18, SIZE_MIN = 8 };
    if (!title || !*title) return;
    int wide = text_width(title, SIZE) * 9 / 8, room = width - 2 * X; /* it is bold */
    int size = wide <= room ? SIZE : SIZE * room / wide;
    if (size < SIZE_MIN) size = SIZE_MIN;
    fprintf(out, "<text class=\"title\" x=\"%d\" y=\"30\"", X);
    if (size < SIZE) fprintf(out, " style=\"font-size:%dpx\"", size);
    fputc('>', out);
    svg_text(out, title, SVG_TEXT_MAX);
    fputs("</text>\n", out);
}

void svg_name(FILE *out, const struct trace *trace, cv_pid p) {
    char name[ROSTER_NAME_MAX];
    svg_text(out, roster_name(&trace->roster, p, name), ROSTER_NAME_MAX);
}

int svg_paragraph(FILE *out, const char *class, int x, int y, int width, const char *text) {
    char line[SVG_TEXT_MAX];
    int count = 0;
    size_t most = (size_t)(width * 2 / 15); /* of letters that may be bold */
    if (most > sizeof line - 1) most = sizeof line - 1;
    while (*text) {
        size_t length = strcspn(text, "\n"), end = length;
        if (length > most)
            for (end = most; end > most / 2 && text[end] != ' ';) end--;
        snprintf(line, sizeof line, "%.*s", (int)end, text);
        if (out) svg_label(out, class, x, y + SVG_LINE * count, line);
        count++;
        text += end;
        text += *text == ' ' || *text == '\n';
    }
    return count;
}
