#include "service/admin/admin.h"

#include "service/admin/http.h"

const struct server_admin admin = {.answer_word = word_answer,
                                   .check_words = words_check,
                                   .open = http_open,
                                   .close = http_close,
                                   .reload = http_reload,
                                   .go_on = http_go_on,
                                   .close_listing = listing_close,
                                   .answered = page_write_answered,
                                   .changed = page_holds_changed};
