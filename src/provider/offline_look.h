/* The terms of a task that the offline model looks for as a subagent, and the lines that the tools
 * returned, with how well each fits. Everything that the model says stands on these lines; text in
 * them is compared, never followed. */
#ifndef PROVIDER_OFFLINE_LOOK_H
#define PROVIDER_OFFLINE_LOOK_H

#include "provider/offline.h"

#define TERMS_MAX 12u
#define PAIRS_MAX 6u
#define TERM_LEN  64u
#define FILES_MAX 512u

enum task_kind { TASK_FIND, TASK_LIST, TASK_REVIEW };

enum term_kind {
	TERM_WORD,  /* matched by its stem at the beginning of a word */
	TERM_IDENT, /* a program's name: snake_case, camelCase, f(), SSE */
	TERM_FILE,  /* a file name; the last part of a path */
};

struct term {
	enum term_kind kind;
	int weight;          /* rare terms have more */
	char text[TERM_LEN]; /* as it stands in the task */
	char key[TERM_LEN];  /* lower case; a word's stem */
};

enum line_shape { SHAPE_TEXT, SHAPE_COMMENT, SHAPE_DECL, SHAPE_DEF };

struct found_file {
	const char *path;
	unsigned terms; /* found in the path; bit i: terms[i] */
	int score;
	int best; /* index of lines; -1: none fits */
	bool test, doc, was_read;
};

struct found_line {
	const char *text;
	struct found_file *file;
	int number;     /* from 1 */
	unsigned terms; /* found in the line */
	int score;      /* 0: says nothing about the task */
	enum line_shape shape;
	bool read; /* by read_file, not a search */
};

struct find {
	struct offline_body *b;
	enum task_kind kind;
	struct term terms[TERMS_MAX];
	unsigned nterms;
	struct {
		unsigned char a, b; /* words side by side, "journal checkpoint": likely one name */
	} pairs[PAIRS_MAX];
	unsigned npairs;
	char scope[TERM_LEN]; /* a folder or file with a "/" in it; "" */
	unsigned file_terms;  /* terms that are TERM_FILE */

	struct found_line *lines; /* in the order they came */
	unsigned nlines, cap;
	struct found_file files[FILES_MAX];
	unsigned nfiles;
	unsigned searches, reads, failed; /* calls answered */
	unsigned matches;                 /* lines that searches returned */
	bool stopped;                     /* a search ended before it had seen all files */
	bool more;                        /* some matches were not returned or listed */
};

/* Find the terms in b->task alone; *f is zeroed but for `b`. */
void find_read_task(struct find *f);
/* Find terms, lines and scores; *f is zeroed but for `b`. 0, AVA_ENOMEM. */
int find_look(struct find *f);

/* Does the list, words between blanks, hold the word? Case aside. */
bool find_listed(const char *list, const char *word, size_t len);
/* Sum of the weights of the terms. */
int find_weight(const struct find *f, unsigned terms);
/* "a", "b" in quotes; those that fit. */
void find_names(const struct find *f, unsigned terms, char *out, size_t size);
bool find_begins(const char *s, const char *word);
/* The name that a line introduces: behind #define, else before the parenthesis, else the last word
 * before the brace ("struct pool {"). false: no name worth saying. */
bool find_name(const struct found_line *l, char out[TERM_LEN]);

#endif
