/* What the tools returned, as lines with a path and a number, and how well
 * each fits the task. Everything the offline model says stands on these lines;
 * text in them is compared, never followed. */
#ifndef PROVIDER_OFFLINE_HITS_H
#define PROVIDER_OFFLINE_HITS_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/offline_body.h"
#include "provider/offline_terms.h"

#define HITS_MAX_LINES 65536u
#define HITS_MAX_FILES 512u

enum line_shape { SHAPE_TEXT, SHAPE_COMMENT, SHAPE_DECL, SHAPE_DEF };

struct hit_line {
	const char *text; /* not NUL-terminated; borrowed from the body's arena */
	unsigned len;
	int line;      /* from 1 */
	unsigned mask; /* terms in it */
	int score;     /* 0: says nothing about the task */
	unsigned short file;
	unsigned char shape; /* enum line_shape */
	bool read;           /* from read_file: its neighbours are there */
};

struct hit_file {
	struct slice path;
	unsigned mask;      /* terms in its lines */
	unsigned path_mask; /* terms in its path */
	int score;          /* 0: no line fits */
	unsigned hits;      /* lines that fit */
	int best, second;   /* index of lines; -1: none. second is far from best */
	bool test, doc;
	bool was_read;
};

struct hits {
	struct hit_line *lines; /* in the order they came */
	unsigned nlines, cap;
	struct hit_file files[HITS_MAX_FILES];
	unsigned nfiles;
	unsigned searches, reads, failed; /* calls answered */
	unsigned matches;                 /* lines that searches returned */
	int weight[TERMS_MAX];            /* of the terms, rare ones more */
	bool more;                        /* a search said that there is more */
};

/* AVA_ENOMEM; memory is the body's. */
int hits_read(struct hits *h, struct offline_body *b, const struct terms *t);

enum line_shape hits_shape(const char *s, size_t len);
/* The name that a definition or declaration introduces; len 0: none seen. */
struct slice hits_name(const char *s, size_t len);

#endif
