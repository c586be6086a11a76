/* A search pattern, and the lines of a text that match it: plain bytes, or a
 * regular expression (PCRE2, compiled to machine code where that is allowed).
 * Whatever the pattern and the text, a search polls its gate and has limits:
 * a pattern that explodes ends in an error. One thread. */
#ifndef TOOL_MATCH_H
#define TOOL_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#define MATCH_PATTERN_MAX 1000 /* bytes */

#define MATCH_REGEX       1u
#define MATCH_IGNORE_CASE 2u
#define MATCH_NO_JIT      4u /* tests: as where no memory may be made executable */

struct ava_error;
struct gate;
struct match;

struct match_line {
	size_t start, end; /* of the line; without \n or \r\n */
	size_t at;         /* where in the text the match begins */
};

/* `pattern` is copied; `gate` is borrowed until match_free. AVA_EINVAL with a
 * sentence that says what is wrong with it. */
int match_new(struct match **m, const char *pattern, unsigned flags, const struct gate *gate,
	      struct ava_error *err);
void match_free(struct match *m); /* NULL is fine */

/* The next line of `data` that matches and does not begin before *from, which
 * is the begin of a line and moves behind that line. 1; 0: no more; AVA_EINVAL:
 * too much work; AVA_ECANCELED, AVA_ETIMEOUT: the gate. */
int match_next(struct match *m, const char *data, size_t len, size_t *from, struct match_line *line,
	       struct ava_error *err);

#endif
