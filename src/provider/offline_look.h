/* The terms of a task that the offline model looks for as a subagent, and the lines that the tools
 * returned, with how well each fits. Everything that the model says stands on these lines; text in
 * them is compared, never followed. */
#ifndef PROVIDER_OFFLINE_LOOK_H
#define PROVIDER_OFFLINE_LOOK_H

#include "provider/offline.h"

#define TERMS_MAX    12u
#define PAIRS_MAX    6u
#define TERM_LEN     64u
#define FILES_MAX    512u
#define FINDINGS_MAX 24u
#define QUOTE_MAX    200u

enum task_kind { TASK_FIND, TASK_LIST, TASK_HOW, TASK_REVIEW };

enum term_kind {
	TERM_WORD,   /* a word, matched by its stem at the beginning of a word */
	TERM_IDENT,  /* a program's name: snake_case, camelCase, f(), SSE */
	TERM_QUOTED, /* any text, given in quotes */
	TERM_FILE,   /* a file name; the last part of a path */
};

struct term {
	enum term_kind kind;
	int weight;          /* rare terms have more */
	char text[TERM_LEN]; /* the term as it stands in the task */
	char key[TERM_LEN];  /* the term in lower case; of a word the stem */
};

enum line_shape { SHAPE_TEXT, SHAPE_COMMENT, SHAPE_DECL, SHAPE_DEF };

struct found_file {
	const char *path;
	unsigned terms; /* terms found in the path; bit i: terms[i] */
	int score;
	int best; /* index in `lines` of the best line; -1: none fits */
	bool test, doc, was_read;
};

struct found_line {
	const char *text;
	struct found_file *file;
	int number;     /* the line's number, from 1 */
	unsigned terms; /* terms found in the line; bits as above */
	int score;      /* 0: the line says nothing about the task */
	unsigned char shape;
	bool read; /* read by read_file: the lines beside it are in `lines` too */
};

struct finding {
	const struct found_line *line;
	int rank; /* higher is better */
	char why[160];
};

struct find {
	struct offline_body *b;
	struct offline_draft *draft;
	enum task_kind kind;
	struct term terms[TERMS_MAX];
	unsigned nterms;
	struct {
		unsigned char a, b; /* words side by side, "journal checkpoint": likely one name */
	} pairs[PAIRS_MAX];
	unsigned npairs;
	char scope[TERM_LEN]; /* a folder or file with a "/" in it to look in; "": none */
	unsigned file_terms;  /* bits of the terms that are TERM_FILE */

	struct found_line *lines; /* lines in the order in which they came */
	unsigned nlines, cap;
	struct found_file files[FILES_MAX];
	unsigned nfiles;
	unsigned searches, reads, failed; /* answered calls; failed: of both kinds */
	unsigned matches;                 /* number of lines that searches returned */
	bool stopped;                     /* a search ended before it had seen all files */
	bool more;                        /* some matches were not returned or listed */

	const char *search_name; /* name of the search tool; NULL: none offered */
	const json_t *search, *read;
	unsigned ncalls;                       /* number of calls made in this turn */
	struct finding findings[FINDINGS_MAX]; /* the best findings first */
	unsigned nfindings;
};

/* Find terms, lines and scores; the caller has zeroed *f but for `b`. 0, AVA_ENOMEM. */
int find_look(struct find *f);

/* Answer a person's question by one look: calls into `draft`, or the findings into `say`.
 * AVA_ENOMEM. */
int offline_look(struct offline_body *b, struct offline_draft *draft, const char *words,
		 struct buf *say);

/* Sum of the weights of the terms. */
int find_weight(const struct find *f, unsigned terms);
/* "a, b and c" in quotes; cut when it does not fit. */
void find_names(const struct find *f, unsigned terms, char *out, size_t size);

bool find_begins(const char *s, const char *word);
bool find_ends(const char *s, const char *tail); /* and `s` is longer than `tail` */
bool find_name_char(char c);
enum line_shape find_shape(const char *s);
bool find_define(const char *s); /* is it a #define? */
/* The name that a line introduces: behind #define, else before the parenthesis, else the last word
 * before the brace ("struct pool {"). false: no name worth saying. */
bool find_name(const struct found_line *l, char out[TERM_LEN]);
/* Were the line and the one above it, l[-1], both read? */
bool find_follows(const struct find *f, const struct found_line *l);

#endif
