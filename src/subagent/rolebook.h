/* The roles that there are: the built-in ones and those of a person's folders, read anew
 * when a file has changed. The list depends on the working folder, because a project brings its
 * own roles; a project's role is used only when a person has trusted its bytes. */
#ifndef SUBAGENT_ROLEBOOK_H
#define SUBAGENT_ROLEBOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"
#include "subagent/role.h"

#define ROLE_FILES_MAX  256u  /* files in a folder and the folders in it */
#define ROLE_TRUSTS_MAX 1024u /* trusted hashes */

struct role_entry {
	const struct role *role; /* a reference; NULL: it cannot be read */
	char *path;              /* "": built in; owned */
	char *why;               /* why it cannot be read, or is not used; NULL: it is; owned */
	enum role_source source;
	bool trusted;
};

struct role_list {
	struct role_entry *items;
	size_t n, cap;
};

/* All roles that can be seen from `cwd` ("": no project), in order of precedence: built-in,
 * project, user, claude. AVA_ENOMEM. */
int roles_list(const char *cwd, struct role_list *out);
/* The roles in a file or folder, read as a project's; nothing is kept of them.
 * AVA_ENOENT, AVA_ENOMEM. */
int roles_look(const char *path, struct role_list *out, struct ava_error *err);
void role_list_free(struct role_list *l);

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

/* A person trusts a file, or a skill's folder (tool/skill.h), with this hash; for as long as the
 * process runs. AVA_EINVAL: no SHA-256; AVA_ETOOBIG, AVA_ENOMEM. */
int roles_trust(const char *hash);

bool roles_trusted(const char *hash);

/* Made of roles/ when the program is built (script/embed). */
extern const struct embedded builtin_roles[];

#endif
