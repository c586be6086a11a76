/* A Seal as it stands in the daily log (doc/SEALS.md): its content taken
 * apart and its signature checked. For the verifier, and for who goes on
 * sealing. */
#ifndef JOURNAL_SEAL_READ_H
#define JOURNAL_SEAL_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;

#define SEAL_HASH       32
#define SEAL_KEY        32
#define SEAL_SIG        64
#define SEAL_MARK_CHARS 6 /* hex digits a mark has in "lines" */

/* Below the data root. */
#define SEAL_KEY_PATH    "seals/key"    /* the seed, 0600 */
#define SEAL_PUBLIC_PATH "seals/public" /* every key that ever sealed here */
#define SEAL_LAST_PATH   "seals/last"   /* the newest Seal, outside of what it seals */

struct seal {
	uint64_t n; /* from 1, without a gap */
	unsigned char prev[SEAL_HASH], key[SEAL_KEY];
	unsigned char hash[SEAL_HASH]; /* of the whole content: `prev` of the next */
	bool authentic;                /* the signature is of `key` */
	json_t *doc;                   /* owned */
};

/* `content`: the bytes of the event's content. 0 or AVA_ECORRUPT when it is no
 * Seal, AVA_ENOMEM. */
int seal_parse(struct seal *s, const char *content, size_t len, struct ava_error *err);
void seal_fini(struct seal *s); /* accepts a zeroed one */

struct seal_item {
	const char *path; /* borrowed from the seal */
	uint64_t from;    /* "lines" begins at this byte */
	uint64_t size;    /* what `head` is the SHA-256 of, from byte 0 on */
	uint64_t each;    /* lines that one mark stands for */
	const char *lines;
	size_t nmarks;
	unsigned char head[SEAL_HASH];
};
/* Item `i` of the seal: 1; 0: there is none; AVA_ECORRUPT. */
int seal_item(const struct seal *s, size_t i, struct seal_item *item);
uint32_t seal_mark(const struct seal_item *item, size_t i);

/* Is the line (of an event) a Seal? Looks at its beginning only. */
bool seal_is_line(const char *line, size_t len);

/* seals/last. */
struct seal_last {
	uint64_t n, size;
	unsigned char hash[SEAL_HASH], head[SEAL_HASH];
	char path[200]; /* the daily log; its first `size` bytes have `head` */
};
/* 0, AVA_ENOENT, AVA_ECORRUPT or how reading failed. */
int seal_last_read(int rootfd, struct seal_last *last, struct ava_error *err);
int seal_last_write(int rootfd, const struct seal_last *last);

/* 1: seals/public names this key; 0: it does not; or a code. */
int seal_key_known(int rootfd, const unsigned char key[SEAL_KEY], struct ava_error *err);

/* ---- the newest Seal, for those who go on from it */

struct seal_newest {
	uint64_t n;   /* 0: there is none */
	uint64_t lsn; /* of its event; 0: not known */
	unsigned char hash[SEAL_HASH];
	char day[16]; /* "2026-11-21", of the log it stands in; "": not known */
};
/* From the daily logs, and seals/last when that knows a later one. */
int seal_find_newest(int rootfd, struct seal_newest *newest, struct ava_error *err);

/* The last one of this log: 1; 0: it has none; or a code. */
int seal_find_in(int rootfd, const char *path, struct seal_newest *newest, struct ava_error *err);

bool seal_unhex(const char *hex, unsigned char *out, size_t len); /* exactly 2 * len digits */

#endif
