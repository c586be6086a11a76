/* What the planner of the offline model looks for and what it was shown: the
 * terms of the task, and the lines that the tools returned, with how well each
 * fits. Everything the model says stands on these lines; text in them is
 * compared, never followed. Pure. */
#ifndef PROVIDER_OFFLINE_LOOK_H
#define PROVIDER_OFFLINE_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/offline_body.h"

#define LOOK_TERMS 12u
#define LOOK_PAIRS 6u
#define LOOK_LINES 65536u
#define LOOK_FILES 512u
#define TERM_LEN   64u

enum task_kind { TASK_FIND, TASK_LIST, TASK_HOW, TASK_REVIEW };

enum term_kind {
	TERM_WORD,   /* matched by its stem at the begin of a word */
	TERM_IDENT,  /* a name of a program: snake_case, camelCase, f(), SSE */
	TERM_QUOTED, /* given in quotes, any text */
	TERM_FILE,   /* a file name; of a path the last part */
};

struct term {
	enum term_kind kind;
	int weight;          /* rare ones have more */
	char text[TERM_LEN]; /* as it stands in the task */
	char low[TERM_LEN];  /* lower case; of a word its stem */
	size_t len;          /* of low */
};

enum line_shape { SHAPE_TEXT, SHAPE_COMMENT, SHAPE_DECL, SHAPE_DEF };

struct look_line {
	const char *text, *low; /* borrowed from the body's arena; low: in lower case */
	unsigned len;
	int line;      /* from 1 */
	unsigned mask; /* terms in it */
	int score;     /* 0: says nothing about the task */
	unsigned short file;
	unsigned char shape; /* enum line_shape */
	bool read;           /* from read_file: its neighbours are there */
};

struct look_file {
	struct slice path;
	unsigned path_mask; /* terms in its path */
	int score;
	int best; /* index of lines; -1: none fits */
	bool test, doc, was_read;
};

struct look {
	enum task_kind kind;
	struct term terms[LOOK_TERMS];
	unsigned nterms;
	/* Words that stand side by side, "journal checkpoint": likely one name. */
	struct {
		unsigned char a, b;
	} pairs[LOOK_PAIRS];
	unsigned npairs;
	char scope[TERM_LEN]; /* a folder or file with a "/" in it; "" */
	unsigned file_mask;   /* terms that are TERM_FILE */

	struct look_line *lines; /* in the order they came */
	unsigned nlines, cap;
	struct look_file files[LOOK_FILES];
	unsigned nfiles;
	unsigned searches, reads, failed; /* calls answered */
	unsigned matches;                 /* lines that searches returned */
	bool more;                        /* a search said that there is more */
};

/* Terms, lines and scores; *k is zeroed memory. AVA_ENOMEM; memory is the body's. */
int look_read(struct look *k, struct offline_body *b);

/* Sum of the weights of the terms in `mask`. */
int look_weight(const struct look *k, unsigned mask);
/* "a, b and c" of the terms in `mask`, in quotes; cut when it does not fit. */
void look_names(const struct look *k, unsigned mask, char *out, size_t size);

enum line_shape look_shape(const char *s, size_t len);
/* The name that a definition or declaration introduces; len 0: none seen. */
struct slice look_name(const struct look_line *l);
/* lines[i] was read, and the line above it stands at lines[i - 1]. */
bool look_follows(const struct look *k, unsigned i);

#endif
