/* Secrets are taken out once, on entry to the conversation and the log:
 * known values (provider keys of this process) and key patterns (sk-ant-…,
 * sk-…, ghp_…, AKIA…, xox?-…, Telegram's, PEM private keys, Bearer tokens). */
#ifndef CODEC_REDACT_H
#define CODEC_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct redact; /* immutable after set-up; may be read by several threads */

struct redact *redact_new(void);
void redact_free(struct redact *r);
/* Make a secret known, *copied*; under 8 bytes it is ignored. Its base64 forms are known too.
 * AVA_ETOOBIG from about the 36th on. */
int redact_add(struct redact *r, const char *secret);

/* Append `s` to `out` with each secret as "[redacted]". Returns the number of
 * replacements, or a negative code. `r` NULL: no secrets are known. */
int redact_text(const struct redact *r, struct buf *out, const char *s, size_t len);
/* As redact_text; *at, a place in `s`, becomes that place in what was appended. */
int redact_around(const struct redact *r, struct buf *out, const char *s, size_t len, size_t *at);
/* As redact_text, for JSON text: each string (names of members too) is looked at by itself, in its
 * own characters, and everything between strings is copied, so that the outcome is JSON again.
 * AVA_EINVAL: `s` is no JSON. */
int redact_json(const struct redact *r, struct buf *out, const char *s, size_t len);

/* A growing text, shown while it grows. */
struct redact_live {
	struct buf raw; /* the text from the beginning of a line on */
	size_t shown;   /* redacted bytes of `raw` that were given so far */
};
void redact_live_init(struct redact_live *l);
void redact_live_fini(struct redact_live *l);
/* Append to `out` the part that can be shown after `s`: up to the last whole word, of a private
 * key nothing before its end; with `end` all of it, and the next piece begins another text. `r`
 * NULL: everything, at once. 0 or a code. */
int redact_live(const struct redact *r, struct redact_live *l, const char *s, size_t len, bool end,
		struct buf *out);

bool redact_has_known(const struct redact *r, const char *s, size_t len);

#endif
