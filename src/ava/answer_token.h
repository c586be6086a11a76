/* An answer as a list of folded words, for answer.c. */
#ifndef AVA_ANSWER_TOKEN_H
#define AVA_ANSWER_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define TOKENS_MAX 48
#define TOKEN_LEN  64

struct token {
	char text[TOKEN_LEN]; /* lower case, without apostrophes; of a number its digits */
	bool number;
	bool dollars; /* a number with $ before it */
	bool comma;   /* a comma or the like stands before it */
	int64_t millionths;
};

/* Their number, or -1 when something is among them that no answer has: a
 * question mark, quotes, characters of other scripts. */
int tokens_read(const char *text, struct token out[TOKENS_MAX]);

#endif
