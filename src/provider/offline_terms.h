/* What to look for: the words of a task that are worth a search, their
 * weight, and what kind of answer is wanted. Pure. */
#ifndef PROVIDER_OFFLINE_TERMS_H
#define PROVIDER_OFFLINE_TERMS_H

#include <stdbool.h>
#include <stddef.h>

#define TERMS_MAX 12u
#define TERM_LEN  64u
#define PAIRS_MAX 6u

enum task_kind { TASK_FIND, TASK_LIST, TASK_HOW, TASK_REVIEW };

enum term_kind {
	TERM_WORD,   /* matched by its stem at the begin of a word */
	TERM_IDENT,  /* a name of a program: snake_case, camelCase, f(), SSE */
	TERM_QUOTED, /* given in quotes, any text */
	TERM_FILE,   /* a file name; of a path the last part */
};

struct term {
	enum term_kind kind;
	int weight;
	char text[TERM_LEN]; /* as it stands in the task */
	char low[TERM_LEN];  /* lower case; of a word its stem */
	size_t len;          /* of low */
};

struct terms {
	enum task_kind kind;
	struct term list[TERMS_MAX]; /* heaviest first */
	unsigned n;
	/* Words that stand side by side, "journal checkpoint": likely one name. */
	struct {
		unsigned char a, b;
	} pairs[PAIRS_MAX];
	unsigned npairs;
	char scope[TERM_LEN]; /* a folder or file with a "/" in it; "" */
	unsigned file_mask;   /* terms that are TERM_FILE */
	bool tests, docs;     /* the task speaks of tests or documentation */
};

void terms_read(struct terms *t, const char *task, size_t len);
/* "a, b and c" of the terms in `mask`, in quotes; cut when it does not fit. */
void terms_names(const struct terms *t, unsigned mask, char *out, size_t size);

#endif
