/* messages.jsonl of a run (doc/MESSAGES.md): what was sent to the model, and
 * how the next request begins. The file itself is read by the caller. */
#ifndef PROVIDER_MESSAGES_H
#define PROVIDER_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/hash.h"
#include "codec/jscan.h"

struct ava_error;
struct dialect;

/* Offsets and counts of what messages_request appended. */
struct messages_info {
	size_t head_len;           /* bytes of the head; the lines follow it */
	struct slice head;         /* the head's name (provider/head.h); borrowed */
	struct hash_sha256 prefix; /* running hash over the head */
	size_t lines;              /* number of messages, amendments not counted */
	bool replied;              /* the model has replied, or there was a cut */
	size_t torn;               /* bytes of an unfinished last line, left out */
	size_t cut_at;             /* offset of the newest cut in the file */
	bool cut;                  /* there is a cut; then the next three are set */
	size_t calls;              /* number of calls whose lines the cuts removed */
	size_t task_len; /* bytes of the first line's text that are the task, without the summary */
	struct slice ledger; /* the summary's list of calls: the inside of an array; borrowed */
};

/* Append the request up to its tail: the head that the spec line names, from memory or below
 * `root_fd` (head_add), then all messages joined by commas, amendments applied. `info` may be
 * NULL. AVA_ECORRUPT naming the line or the head, AVA_EFORMAT for a newer machine version,
 * AVA_ENOMEM, AVA_ETOOBIG, AVA_EIO, AVA_ENOENT. `file` may begin with its newest cut: what stands
 * before that makes no difference. */
int messages_request(struct buf *out, const char *file, size_t len, int root_fd,
		     struct messages_info *info, struct ava_error *err);
/* Append all messages of the whole file as they were said, joined by commas: nothing replaced,
 * nothing cut. Errors as of messages_request. */
int messages_said(struct buf *out, const char *file, size_t len, struct ava_error *err);
/* The running hash over `request`, which messages_request wrote into an empty buffer. */
struct hash_sha256 messages_prefix(const struct buf *request, const struct messages_info *info);
/* d->check of lines of which the first *checked bytes are as they were when this found no fault: of
 * them little is looked at. *checked: bytes that are right, 0 with a fault. */
int messages_check(const struct dialect *d, const char *lines, size_t len, size_t *checked,
		   struct ava_error *err);
/* Add lines joined by \n to the hash over what a request begins with; *wordless: no
 * message follows its head yet. */
void messages_hash(struct hash_sha256 *prefix, bool *wordless, const char *lines, size_t len);

#endif
