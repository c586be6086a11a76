/* Wildcards as git's ignore files use them: ? * [...] \x and, between
 * slashes, ** for any number of folders. Bytes, not characters. */
#ifndef TOOL_WILD_H
#define TOOL_WILD_H

#include <stdbool.h>
#include <stddef.h>

#define WILD_PATTERN_MAX 1024 /* a longer pattern matches nothing */

/* Does all of `text` match? With `path`, only ** matches a slash. A pattern
 * that needs too many steps (*a*a*a*a*b) does not match. */
bool wild_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
		bool path);

/* Bytes of `pattern` before its first special character. */
size_t wild_plain(const char *pattern, size_t len);

/* A glob argument: "*.c", "*.{c,h}", "src/" "**" "/x.h". Without a slash it is
 * about the file's name, with one about its path. */
#define WILD_ALTERNATIVES 32

struct wild_glob {
	char *text[WILD_ALTERNATIVES];
	unsigned count;
};

struct ava_error;

/* `text` is copied. AVA_EINVAL: too long, or too many alternatives. */
int wild_glob_init(struct wild_glob *g, const char *text, struct ava_error *err);
void wild_glob_fini(struct wild_glob *g);
/* `path` relative to the cwd; `skip` bytes of it are the folder searched, so
 * that a glob may be written relative to either. */
bool wild_glob_match(const struct wild_glob *g, const char *path, size_t skip);

#endif
