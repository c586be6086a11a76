/* Programs of the person that ava runs over a repository: git, and what opens a request. Without a
 * shell, as the person, in this process' group, so that Ctrl-C reaches them. Blocking. */
#ifndef CLI_GIT_H
#define CLI_GIT_H

#include <stddef.h>

struct ava_error;
struct buf;

struct git_call {
	const char *dir;         /* where it runs */
	const char *const *argv; /* NULL at its end; found in $PATH */
	const char *in;          /* what it reads; NULL: nothing */
	size_t len;
	/* Appended to: what it prints, without the newline at its end. NULL: people see it, on
	 * stderr, with its errors; else its last line of errors is the text of `err`. */
	struct buf *out;
};
/* The variables of git that lead to another repository, index or configuration are taken from its
 * environment. AVA_EIO: it did not end with 0; any other error: it did not run. */
int git_call(const struct git_call *call, struct ava_error *err);
/* git_call of `git WORDS` without input, and with `out` without hooks; NULL ends the words. */
int git_say(const char *dir, struct buf *out, struct ava_error *err, ...) __attribute__((sentinel));
/* git_say for one short answer, "" after an error; an error also when it is longer. */
int git_word(const char *dir, char *out, size_t size, struct ava_error *err, ...)
	__attribute__((sentinel));
#define GIT_WORD(dir, out, err, ...) git_word(dir, out, sizeof(out), err, __VA_ARGS__, NULL)

#endif
