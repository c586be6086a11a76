/* The rules of .gitignore files for a path, with git's semantics: the deepest
 * file decides, in it the last rule that matches; .git/info/exclude comes
 * after all of them. A walk pushes the rules of each folder it enters and
 * pops them when it leaves. One thread. */
#ifndef TOOL_IGNORE_H
#define TOOL_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#define IGNORE_TEXT_MAX  (1u << 20) /* bytes read of one ignore file */
#define IGNORE_RULES_MAX 20000      /* rules in force at once; more are left out */

struct ava_error;
struct ignore;

enum ignore_rank {
	IGNORE_FOLDER, /* a .gitignore */
	IGNORE_INFO,   /* .git/info/exclude: only where no .gitignore decides */
};

struct ignore *ignore_new(void);     /* NULL: out of memory */
void ignore_free(struct ignore *ig); /* NULL is fine */

/* Add the rules of one file. `base` is its folder relative to the root, ""
 * for the root, without a slash at its end. Both are copied. 0, AVA_ENOMEM. */
int ignore_push(struct ignore *ig, enum ignore_rank rank, const char *base, const char *text,
		size_t len);
size_t ignore_mark(const struct ignore *ig);
void ignore_pop(struct ignore *ig, size_t mark); /* removes what was pushed since */

/* `path` is relative to the root. The caller leaves ignored folders alone: a path below one is not
 * known as ignored. */
bool ignore_match(struct ignore *ig, const char *path, bool is_dir);
/* Number of ignore files that are left out since their patterns take too long. */
size_t ignore_given_up(const struct ignore *ig);

/* ---- wildcards, as these files use them: ? * [...] \x and, between slashes, ** for
 * any number of folders. Bytes, not characters. */

#define WILD_PATTERN_MAX 1024 /* a longer pattern matches nothing */

/* Does all of `text` match? With `path`, only ** matches a slash. A pattern
 * that needs too many steps does not match. */
bool wild_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
		bool path);

/* A glob argument: "*.c", "*.{c,h}", "src/" "**" "/x.h". Without a slash it is
 * about the file's name, with one about its path. */
#define WILD_ALTERNATIVES 32

struct wild_glob {
	char *text[WILD_ALTERNATIVES];
	unsigned count;
};

/* `text` is copied. AVA_EINVAL: too long, or too many alternatives. */
int wild_glob_init(struct wild_glob *g, const char *text, struct ava_error *err);
void wild_glob_fini(struct wild_glob *g);
/* `path` relative to the cwd; `skip` bytes of it are the folder searched, so that a glob may be
 * written relative to either. A glob that is all zero (none was given) matches all. */
bool wild_glob_match(const struct wild_glob *g, const char *path, size_t skip);

#endif
