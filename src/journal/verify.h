/* Do the logs still hold what was sealed? Reads a data root, changes nothing,
 * needs no daemon (archive ava_read). doc/SEALS.md says what it proves. */
#ifndef JOURNAL_VERIFY_H
#define JOURNAL_VERIFY_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verify_kind {
	VERIFY_BROKEN, /* not what was sealed */
	VERIFY_TAIL,   /* behind the last seal: nothing can be said yet */
	VERIFY_NOTE,   /* to be known, not amiss */
};

struct verify_finding {
	enum verify_kind kind;
	const char *path; /* relative to the root; "" none; borrowed, as `what` */
	uint64_t line;    /* from 1; 0: no certain line */
	uint64_t offset;  /* of that line, or where it would stand */
	const char *what; /* one sentence without a full stop */
};

struct verify_head { /* a seal that was kept elsewhere */
	uint64_t n;
	char hash[65], key[65];
};

struct verify_options {
	const char *root;         /* absolute; borrowed during the call, like all here */
	const char *const *paths; /* below the root; none: all */
	size_t npaths;
	const struct verify_head *head; /* or NULL */
	unsigned threads;               /* 0: two */
	void (*finding)(const struct verify_finding *f, void *user);
	void (*progress)(uint64_t done, uint64_t total, void *user); /* bytes; may be NULL */
	void *user;
};

struct verify_report {
	uint64_t files, bytes, seals; /* looked at */
	uint64_t broken;              /* findings of that kind */
	uint64_t tails, tail_bytes;   /* files with an unsealed end, and how much that is */
	struct verify_head newest;    /* n 0: there is no seal */
	char newest_at[32];
};

/* 0 when it could be done, whatever was found; `finding` is called on the
 * calling thread, files in the order of their names. AVA_ENOENT: no such root,
 * or none of `paths` is there or was ever sealed. */
int verify_run(const struct verify_options *o, struct verify_report *report, struct ava_error *err);

/* The newest seal, without looking at what it seals. AVA_ENOENT: none. */
int verify_newest(const char *root, struct verify_report *report, struct ava_error *err);

#endif
