/* The book of roles (book.h), and what words and records say of one. */
#ifndef SUBAGENT_ROLEBOOK_H
#define SUBAGENT_ROLEBOOK_H

#include <stdbool.h>

#include "base/util.h"
#include "subagent/book.h"
#include "subagent/role.h"

extern const struct book book_of_roles;

/* The role of this name that can be used from `cwd`: a new reference. NULL: AVA_EINVAL
 * says which there are, AVA_EDENIED that it is not trusted, or AVA_ENOMEM. */
const struct role *role_find(const char *name, const char *cwd, struct ava_error *err);

/* Is this word of a person's a role? "code_reviewer", "code-reviewer", "codereviewer",
 * "reviewer". A role of the person's own must have been seen before and is named in full. Its name
 * in `out`. */
bool role_word(const char *word, char out[ROLE_NAME_MAX + 1]);

/* The role of a stored config, whatever became of its file. A new reference; NULL: no memory,
 * or the config names none. */
const struct role *role_of_config(const json_t *config);

/* Made of roles/ when the program is built (script/embed). */
extern const struct embedded builtin_roles[];

#endif
