/* A Seal as it stands in the daily log (doc/SEALS.md): its content taken apart and its signature
 * checked. For the verifier and the sealer. */
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
#define SEAL_MARK_CHARS 6 /* hex digits of a mark in "lines" */

/* Paths below the data root. */
#define SEAL_KEY_PATH    "seals/key"    /* seed of the private key, mode 0600 */
#define SEAL_PUBLIC_PATH "seals/public" /* public keys: every one that ever sealed here */
#define SEAL_LAST_PATH   "seals/last"   /* the newest Seal, outside of the sealed files */
#define SEAL_OPEN_PATH   "seals/open"   /* stands while somebody seals */

struct seal {
	uint64_t n; /* number of the Seal, from 1, without a gap */
	unsigned char prev[SEAL_HASH], key[SEAL_KEY];
	unsigned char hash[SEAL_HASH]; /* hash of the whole content, the `prev` of the next Seal */
	bool authentic;                /* `key` made the signature */
	json_t *doc;                   /* owned */
};

/* Parse the bytes of an event's content. 0, AVA_ECORRUPT when it is no Seal, AVA_ENOMEM. */
int seal_parse(struct seal *s, const char *content, size_t len, struct ava_error *err);
void seal_fini(struct seal *s); /* accepts a zeroed one */

struct seal_item {
	const char *path; /* borrowed from the seal */
	uint64_t from;    /* byte where "lines" begins */
	uint64_t size;    /* `head` is the SHA-256 of bytes [0, size) */
	uint64_t each;    /* number of lines that one mark stands for */
	const char *lines;
	size_t nmarks;
	unsigned char head[SEAL_HASH];
};
/* Read item `i` of the seal: 1; 0: no such item; AVA_ECORRUPT. */
int seal_item(const struct seal *s, size_t i, struct seal_item *item);
uint32_t seal_mark(const struct seal_item *item, size_t i);
/* The path of the i-th file that goes, behind the items: whatever is sealed of it from then on is
 * of another file. NULL: there is none. */
const char *seal_gone_path(const struct seal *s, size_t i);

/* Is the event's line a Seal? Looks at its beginning only. */
bool seal_is_line(const char *line, size_t len);

#define SEAL_GOING 4

/* Content of seals/last. */
struct seal_last {
	uint64_t n, size;
	unsigned char hash[SEAL_HASH], head[SEAL_HASH];
	char path[200]; /* a daily log; its first `size` bytes have `head` */
	/* Place in a daily log: what is told before it is sealed. "": not known. */
	char since_path[200];
	uint64_t since;
	/* Files that go on from start to start, as far as they are sealed: their hash there. */
	struct seal_going {
		uint64_t size, inode, seq;
		unsigned char state[SEAL_HASH]; /* as of hash_sha256_save */
		unsigned char head[SEAL_HASH];  /* of `size` bytes */
		char path[64];
	} going[SEAL_GOING];
	size_t ngoing;
};
/* Read seals/last: 0, AVA_ENOENT, AVA_ECORRUPT or the error of reading. */
int seal_last_read(int rootfd, struct seal_last *last, struct ava_error *err);
int seal_last_write(int rootfd, const struct seal_last *last);

/* 1: seals/public lists this key; 0: it does not; or a code. */
int seal_key_known(int rootfd, const unsigned char key[SEAL_KEY], struct ava_error *err);

/* ---- the newest Seal, from which the chain goes on */

struct seal_newest {
	uint64_t n;   /* number of the Seal; 0: there is none */
	uint64_t lsn; /* lsn of the Seal's event; 0: not known */
	unsigned char hash[SEAL_HASH];
	char day[16]; /* date of the Seal's daily log: "2026-11-21"; "": not known */
};
/* Find the newest Seal in the daily logs, or in seals/last when that has a later one. */
int seal_find_newest(int rootfd, struct seal_newest *newest, struct ava_error *err);

/* Find the last Seal of this log: 1; 0: none; or a code. */
int seal_find_in(int rootfd, const char *path, struct seal_newest *newest, struct ava_error *err);

#endif
