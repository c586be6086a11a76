/* Requests to the memory and their answers; memory.h has the rest. */
#ifndef MEMORY_OP_H
#define MEMORY_OP_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/list.h"

#define MEMORY_FILE     "memory.db"
#define MEMORY_TEXT_MAX 1000 /* most bytes of a text */
#define MEMORY_TAGS_MAX 200  /* most bytes of all tags of a row, a blank between two */
#define MEMORY_ROWS_MAX 10000
#define MEMORY_ID_LEN   24

/* Strings in answers are never NULL; in requests NULL means unset. */
struct memory_row {
	const char *id;   /* "M-19c0de"; never reused */
	const char *user; /* the owner of the row: nobody else finds it */
	const char *kind; /* "person", "project" or "fact" */
	const char *cwd;  /* the folder that it is about, with those below; "": everywhere */
	const char *text, *tags;
	const char *how;     /* how the person gave it: said, confirmed, added, edited */
	const char *session; /* conversation that it came from; "": none */
	int pinned;          /* 1 or 0; in a change -1: unchanged */
	int64_t created_ms, updated_ms;
	char hash[HASH_HEX_LEN + 1]; /* hash of the text and a salt; the salt goes with the row */
};

enum memory_what {
	MEMORY_LOOK,   /* give the reports that are due, nothing else */
	MEMORY_WRITE,  /* add `row`; with an id: change the set fields of that row */
	MEMORY_REMOVE, /* remove `ids`, or with `all` everything of the user: no byte stays */
	MEMORY_FIND,   /* find rows with the words of `words` (none: all), the best first */
	MEMORY_RECALL, /* give memories for a conversation's beginning, at most `bytes` */
	MEMORY_TOLD,   /* note that reports due up to `told` were made */
	MEMORY_RESET,  /* set a damaged file aside */
};

enum memory_outcome { MEMORY_ADDED, MEMORY_CHANGED, MEMORY_KNOWN };

struct memory_due {
	int64_t n; /* number of the report, increasing */
	const char *id, *user, *session, *change, *hash;
};

/* One request. */
struct memory_op {
	enum memory_what what;
	struct memory_row row; /* FIND and RECALL: user, cwd, kind */
	/* FIND, RECALL: words to look for; REMOVE: what a person was asked, which must begin with
	 * the row's text; NULL: none. */
	const char *words;
	const char *const *ids;
	size_t nids;
	bool all; /* REMOVE: everything; FIND: rows of every folder, not of row.cwd alone */
	size_t limit, bytes;
	int64_t told;
	const void *stop; /* an atomic_bool: true: the answer is not needed any more; or NULL */
	/* Called on the loop, once, never during the call; the op is the callback's then. */
	void (*done)(struct memory_op *op);
	void *user;

	/* The answer; its strings are in `mem`. */
	int rv;
	struct ava_error err;
	enum memory_outcome outcome;
	struct memory_row *rows; /* WRITE: the row, then rows nearly equal to it */
	size_t nrows;
	struct memory_due *due;
	size_t ndue;
	struct arena mem;
	struct list node; /* in a list of the memory's */
};

#endif
