#include "fence/http.h"

#include <string.h>
#include <strings.h>

static int refuse(struct http_head *head, int error, const char *why) {
    head->error = error;
    head->why = why;
    return -1;
}

/* ---- Characters and lines ---- */

static bool is_token_char(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct http_text text) {
    for (size_t i = 0; i < text.size; i++)
        if (!is_token_char((unsigned char)text.at[i])) return false;
    return text.size > 0;
}

static bool is_value(struct http_text text) {
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return false;
    }
    return true;
}

static struct http_text trimmed(struct http_text text) {
    while (text.size && (*text.at == ' ' || *text.at == '\t')) text.at++, text.size--;
    while (text.size && (text.at[text.size - 1] == ' ' || text.at[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* The line at *at, which moves behind it.  False: a CR or LF without the other. */
static bool next_line(const unsigned char *bytes, size_t *at, struct http_text *line) {
    size_t end = *at;
    while (bytes[end] != '\r' && bytes[end] != '\n') end++;
    *line = (struct http_text){(const char *)bytes + *at, end - *at};
    if (bytes[end] != '\r' || bytes[end + 1] != '\n') return false;
    *at = end + 2;
    return true;
}

/* Its size, with the empty line that ends it; 0: incomplete.  A bare LF ends it too, so that it is
 * refused at once instead of being waited for. */
static size_t head_size(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i + 1 < size; i++) {
        if (bytes[i] == '\n' && bytes[i + 1] == '\n') return i + 2;
        if (bytes[i] == '\n' && i + 2 < size && bytes[i + 1] == '\r' && bytes[i + 2] == '\n')
            return i + 3;
    }
    return 0;
}

bool http_is(struct http_text text, const char *word) {
    return text.at && strlen(word) == text.size && memcmp(text.at, word, text.size) == 0;
}

static bool is_name(struct http_text text, const char *word) {
    return strlen(word) == text.size && strncasecmp(text.at, word, text.size) == 0;
}

/* Whether a comma-separated list names it. */
static bool lists(struct http_text list, const char *word) {
    while (list.size) {
        const char *comma = memchr(list.at, ',', list.size);
        size_t size = comma ? (size_t)(comma - list.at) : list.size;
        if (is_name(trimmed((struct http_text){list.at, size}), word)) return true;
        if (size == list.size) break;
        list.at += size + 1;
        list.size -= size + 1;
    }
    return false;
}

/* ---- Fields ---- */

struct fields {
    struct http_text length, encoding;
    bool keep_alive;
};

static bool set_once(struct http_text *field, struct http_text value) {
    if (field->at) return false;
    *field = value;
    return true;
}

static int take_field(struct http_head *head, struct fields *fields, struct http_text name,
                      struct http_text value) {
    if (is_name(name, "content-length")) {
        if (!set_once(&fields->length, value)) return refuse(head, 400, "two lengths of the body");
    } else if (is_name(name, "transfer-encoding")) {
        if (!set_once(&fields->encoding, value))
            return refuse(head, 400, "two encodings of the body");
    } else if (is_name(name, "conclave-token")) {
        if (!set_once(&head->token, value)) return refuse(head, 400, "two tokens");
    } else if (is_name(name, "conclave-lock")) {
        if (!set_once(&head->lock, value)) return refuse(head, 400, "two locks");
    } else if (is_name(name, "connection")) {
        head->close |= lists(value, "close");
        head->upgrades |= lists(value, "upgrade");
        fields->keep_alive |= lists(value, "keep-alive");
    } else if (is_name(name, "upgrade")) {
        head->upgrades = true;
    }
    return 0;
}

static int take_line(struct http_head *head, struct fields *fields, struct http_text line) {
    const char *colon = memchr(line.at, ':', line.size);
    if (!colon) return refuse(head, 400, "a header field without a colon");
    struct http_text name = {line.at, (size_t)(colon - line.at)};
    struct http_text value = {colon + 1, line.size - name.size - 1};
    if (!is_token(name)) return refuse(head, 400, "a malformed name of a header field");
    if (!is_value(value)) return refuse(head, 400, "a control character in a header field");
    return take_field(head, fields, name, trimmed(value));
}

/* The fields of a head that is complete, from its second line on. */
static int read_fields(const unsigned char *bytes, size_t at, struct http_head *head,
                       struct fields *fields) {
    struct http_text line;
    for (unsigned count = 0;; count++) {
        if (!next_line(bytes, &at, &line))
            return refuse(head, 400, "a line that does not end in CR LF");
        if (!line.size) break;
        if (count == HTTP_FIELDS_MAX) return refuse(head, 431, "too many header fields");
        if (take_line(head, fields, line) != 0) return -1;
    }
    /* What follows an empty line in the middle would be a second head. */
    return at == head->size ? 0 : refuse(head, 400, "a malformed header");
}

/* ---- Framing ---- */

static bool parse_length(struct http_text text, int64_t *length) {
    int64_t value = 0;
    if (!text.size || text.size > 18) return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return false;
        value = value * 10 + (text.at[i] - '0');
    }
    *length = value;
    return true;
}

static int set_framing(struct http_head *head, const struct fields *fields) {
    struct http_body *body = &head->body;
    if (fields->encoding.at && fields->length.at)
        return refuse(head, 400, "both Content-Length and Transfer-Encoding");
    if (fields->encoding.at) {
        if (!is_name(fields->encoding, "chunked"))
            return refuse(head, 501, "a Transfer-Encoding other than chunked");
        body->framing = HTTP_CHUNKED;
    } else if (fields->length.at) {
        if (!parse_length(fields->length, &body->left))
            return refuse(head, 400, "a malformed Content-Length");
        body->framing = body->left ? HTTP_LENGTH : HTTP_NO_BODY;
    }
    body->done = body->framing == HTTP_NO_BODY;
    return 0;
}

static int find_head(const unsigned char *bytes, size_t size, struct http_head *head) {
    *head = (struct http_head){0};
    head->size = head_size(bytes, size < HTTP_HEAD_MAX ? size : HTTP_HEAD_MAX);
    if (head->size) return 1;
    return size >= HTTP_HEAD_MAX ? refuse(head, 431, "a header that is too large") : 0;
}

/* ---- Requests ---- */

static int read_request_line(struct http_head *head, struct http_text line) {
    const char *first = memchr(line.at, ' ', line.size);
    if (!first) return refuse(head, 400, "a malformed request line");
    head->method = (struct http_text){line.at, (size_t)(first - line.at)};
    struct http_text rest = {first + 1, line.size - head->method.size - 1};
    const char *second = memchr(rest.at, ' ', rest.size);
    if (!second) return refuse(head, 400, "a malformed request line");
    head->target = (struct http_text){rest.at, (size_t)(second - rest.at)};
    struct http_text version = {second + 1, rest.size - head->target.size - 1};
    if (!is_token(head->method) || !head->target.size || !is_value(head->target) ||
        memchr(head->target.at, '\t', head->target.size))
        return refuse(head, 400, "a malformed request line");
    if (!http_is(version, "HTTP/1.1")) return refuse(head, 505, "the version is not HTTP/1.1");
    return 0;
}

int http_read_request(const unsigned char *bytes, size_t size, struct http_head *head) {
    struct fields fields = {0};
    struct http_text line;
    size_t at = 0;
    int found = find_head(bytes, size, head);
    if (found <= 0) return found;
    if (!next_line(bytes, &at, &line))
        return refuse(head, 400, "a line that does not end in CR LF");
    if (read_request_line(head, line) != 0 || read_fields(bytes, at, head, &fields) != 0 ||
        set_framing(head, &fields) != 0)
        return -1;
    if (head->upgrades || http_is(head->method, "CONNECT"))
        return refuse(head, 501, "another protocol cannot be fenced request by request");
    return 1;
}

bool http_is_safe(const struct http_head *head) {
    return http_is(head->method, "GET") || http_is(head->method, "HEAD") ||
           http_is(head->method, "OPTIONS") || http_is(head->method, "TRACE");
}

/* ---- Responses ---- */

static int read_status_line(struct http_head *head, struct http_text line, bool *old) {
    if (line.size < 12 || memcmp(line.at, "HTTP/1.", 7) != 0 ||
        (line.at[7] != '0' && line.at[7] != '1') || line.at[8] != ' ' ||
        (line.size > 12 && line.at[12] != ' '))
        return refuse(head, 502, "a malformed status line");
    for (int i = 9; i < 12; i++) {
        if (line.at[i] < '0' || line.at[i] > '9')
            return refuse(head, 502, "a malformed status line");
        head->status = head->status * 10 + (line.at[i] - '0');
    }
    *old = line.at[7] == '0';
    return head->status < 100 ? refuse(head, 502, "a malformed status line") : 0;
}

int http_read_response(const unsigned char *bytes, size_t size, bool to_head,
                       struct http_head *head) {
    struct fields fields = {0};
    struct http_text line;
    size_t at = 0;
    bool old = false;
    int found = find_head(bytes, size, head);
    if (found <= 0) return found;
    if (!next_line(bytes, &at, &line))
        return refuse(head, 502, "a line that does not end in CR LF");
    if (read_status_line(head, line, &old) != 0 || read_fields(bytes, at, head, &fields) != 0 ||
        set_framing(head, &fields) != 0)
        return -1;
    head->close |= old && !fields.keep_alive;
    if (to_head || head->status < 200 || head->status == 204 || head->status == 304)
        head->body = (struct http_body){.done = true};
    else if (!fields.length.at && !fields.encoding.at)
        head->body = (struct http_body){.framing = HTTP_UNTIL_END}, head->close = true;
    return 1;
}

/* ---- Bodies ---- */

static int hex_digit(unsigned char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* CR, then LF: 1 when both are there, 0 after the CR, -1 if it is something else. */
static int take_end(struct http_body *body, unsigned char c) {
    if (c != (body->returned ? '\n' : '\r')) return -1;
    body->returned = !body->returned;
    return !body->returned;
}

/* The size of a chunk; extensions, which nobody uses, are refused. */
static bool take_size(struct http_body *body, unsigned char c) {
    int digit = hex_digit(c);
    if (digit >= 0 && !body->returned) {
        if (++body->digits > 15) return false;
        body->left = body->left * 16 + digit;
        return true;
    }
    if (!body->digits) return false;
    int end = take_end(body, c);
    if (end > 0) {
        body->at = body->left ? HTTP_DATA : HTTP_TRAILER;
        body->digits = 0;
        body->blank = true;
    }
    return end >= 0;
}

static bool take_trailer(struct http_body *body, unsigned char c) {
    if (++body->trailer > HTTP_TRAILER_MAX) return false;
    if (!body->returned && c != '\r') {
        body->blank = false;
        return (c >= ' ' && c != 0x7f) || c == '\t';
    }
    int end = take_end(body, c);
    if (end > 0) {
        body->done = body->blank;
        body->blank = true;
    }
    return end >= 0;
}

static bool take_chunked(struct http_body *body, unsigned char c) {
    switch (body->at) {
    case HTTP_SIZE: return take_size(body, c);
    case HTTP_TRAILER: return take_trailer(body, c);
    case HTTP_DATA_END: {
        int end = take_end(body, c);
        if (end > 0) body->at = HTTP_SIZE;
        return end >= 0;
    }
    case HTTP_DATA: break; /* in http_read_body */
    }
    return false;
}

ptrdiff_t http_read_body(struct http_body *body, const unsigned char *bytes, size_t size) {
    size_t done = 0;
    while (done < size && !body->done) {
        bool counted = body->framing == HTTP_LENGTH ||
                       (body->framing == HTTP_CHUNKED && body->at == HTTP_DATA);
        if (body->framing == HTTP_UNTIL_END) return (ptrdiff_t)size;
        if (!counted) {
            if (!take_chunked(body, bytes[done++])) return -1;
            continue;
        }
        size_t taken = size - done;
        if ((int64_t)taken > body->left) taken = (size_t)body->left;
        body->left -= (int64_t)taken;
        done += taken;
        if (body->left) continue;
        if (body->framing == HTTP_LENGTH)
            body->done = true;
        else
            body->at = HTTP_DATA_END;
    }
    return (ptrdiff_t)done;
}
