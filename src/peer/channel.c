#include "peer/channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { COMPACT_AT = 1 << 16 }; /* bytes in front of the first message that are worth a move */
enum { NUMBERS = 6 };          /* of a channel, when it is written down */

unsigned char *channel_push(struct channel *channel, uint32_t size) {
    unsigned char *at = bytes_extend(&channel->kept, sizeof size + size);
    memcpy(at, &size, sizeof size);
    channel->last++;
    return at + sizeof size;
}

bool channel_waits(const struct channel *channel) {
    return channel->incarnation && channel->given < channel->last;
}

const unsigned char *channel_next(struct channel *channel, uint64_t *number, uint32_t *size) {
    if (!channel_waits(channel)) return NULL;
    const unsigned char *at = channel->kept.at + channel->next;
    memcpy(size, at, sizeof *size);
    channel->next += sizeof *size + *size;
    *number = ++channel->given;
    if (channel->sent < channel->given) channel->sent = channel->given;
    return at + sizeof *size;
}

void channel_rewind(struct channel *channel) {
    channel->given = channel->acknowledged;
    channel->next = channel->begin;
    channel->reported = 0;
}

static void compact(struct channel *channel) {
    struct bytes *kept = &channel->kept;
    if (channel->begin == kept->used) {
        kept->used = channel->begin = channel->next = 0;
    } else if (channel->begin >= COMPACT_AT && channel->begin >= kept->used / 2) {
        memmove(kept->at, kept->at + channel->begin, kept->used - channel->begin);
        kept->used -= channel->begin;
        channel->next -= channel->begin;
        channel->begin = 0;
    }
}

bool channel_acknowledge(struct channel *channel, uint64_t number) {
    if (number > channel->sent) return false;
    for (; channel->acknowledged < number; channel->acknowledged++) {
        uint32_t size;
        memcpy(&size, channel->kept.at + channel->begin, sizeof size);
        channel->begin += sizeof size + size;
    }
    if (channel->given < channel->acknowledged) { /* it had arrived by the link before */
        channel->given = channel->acknowledged;
        channel->next = channel->begin;
    }
    compact(channel);
    return true;
}

enum channel_arrival channel_arrived(struct channel *channel, uint64_t number) {
    if (number <= channel->received) return CHANNEL_DUPLICATE;
    if (number != channel->received + 1) return CHANNEL_WRONG;
    channel->received = number;
    return CHANNEL_NEW;
}

bool channel_meet(struct channel *channel, uint64_t incarnation) {
    bool another = channel->incarnation && channel->incarnation != incarnation;
    channel->incarnation = incarnation;
    if (!another) return false;
    struct bytes kept = channel->kept;
    kept.used = 0;
    *channel = (struct channel){.incarnation = incarnation, .kept = kept};
    return true;
}

void channel_give_up(struct channel *channel) {
    bytes_close(&channel->kept);
    channel->begin = channel->next = 0;
    channel->last = channel->given = channel->sent = channel->acknowledged = 0;
}

void channel_write(const struct channel *channel, struct bytes *to) {
    size_t size = channel_backlog(channel);
    const uint64_t numbers[NUMBERS] = {channel->incarnation,  channel->last,     channel->sent,
                                       channel->acknowledged, channel->received, size};
    bytes_add(to, numbers, sizeof numbers);
    bytes_add(to, channel->kept.at + channel->begin, size);
}

/* Whether these are so many messages. */
static bool are_messages(const unsigned char *at, size_t left, uint64_t count) {
    for (uint32_t size; count && left >= sizeof size; count--) {
        memcpy(&size, at, sizeof size);
        if (size > left - sizeof size) return false;
        at += sizeof size + size;
        left -= sizeof size + size;
    }
    return !count && !left;
}

bool channel_read(struct channel *channel, const unsigned char **at, size_t *left) {
    uint64_t numbers[NUMBERS];
    if (*left < sizeof numbers) return false;
    memcpy(numbers, *at, sizeof numbers);
    const unsigned char *kept = *at + sizeof numbers;
    uint64_t last = numbers[1], sent = numbers[2], acknowledged = numbers[3], size = numbers[5];
    if (size > *left - sizeof numbers || sent > last || acknowledged > sent ||
        !are_messages(kept, size, last - acknowledged))
        return false;
    *channel = (struct channel){.incarnation = numbers[0],
                                .last = last,
                                .sent = sent,
                                .acknowledged = acknowledged,
                                .given = acknowledged,
                                .received = numbers[4]};
    bytes_add(&channel->kept, kept, size);
    *at = kept + size;
    *left -= sizeof numbers + size;
    return true;
}

size_t channel_backlog(const struct channel *channel) {
    return channel->kept.used - channel->begin;
}

void channel_free(struct channel *channel) {
    free(channel->kept.at);
    *channel = (struct channel){0};
}
