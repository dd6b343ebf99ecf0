/* DIGEST-MD5 (RFC 2831), as ZooKeeper's clients use it: proves a password without sending it.  Only
 * with TLS is the connection protected, too. */
#ifndef CV_CLIENT_SASL_H
#define CV_CLIENT_SASL_H

#include "wire/zk/zk.h"

enum { MD5_HEX = 33, NONCE_MAX = 65 };

struct sasl_identity {
    const char *user, *password;
    const char *uri;          /* service "/" host */
    const char *client_nonce; /* random, without quotes */
};

/* The answer to a server's challenge, and the proof that it must show in turn.  False: it is not
 * a challenge, or nothing that we can answer. */
bool sasl_answer(const struct sasl_identity *identity, struct zk_text challenge,
                 struct bytes *answer, char proof[MD5_HEX]);
/* Does the server's last token have that proof? */
bool sasl_is_proven(struct zk_text token, const char *proof);

#endif
