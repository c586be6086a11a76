/* The skills that there are (doc/SKILLS.md): folders with a SKILL.md, of the project, of the
 * person for ava, and of the person for Claude Code. Each use looks at the folders; what did not
 * change is not read again. A project's skill is used only when a person has trusted all of its
 * bytes, as with roles (rolebook.h), in whose list of trusted hashes it stands. */
#ifndef SUBAGENT_SKILLBOOK_H
#define SUBAGENT_SKILLBOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "subagent/role.h"

struct ava_error;

#define SKILLS_MAX        256u /* skills of a folder that are looked at */
#define SKILL_NAME_MAX    64
#define SKILL_SUMMARY_MAX 300 /* characters of a description that are shown */

struct skill {
	char *name;    /* lower case; NULL: it cannot be read; owned */
	char *summary; /* one line, safe to show; owned */
	char *path;    /* its folder; owned */
	char *notes;   /* what of its front matter does not count, a line each: "3: …\n"; owned */
	char *why;     /* why it cannot be read, or is not used; NULL: it is; owned */
	enum role_source source;
	bool trusted;
	bool named; /* only a role that names it is offered it (disable-model-invocation) */
	unsigned files;
	int64_t bytes;
	char hash[HASH_HEX_LEN + 1]; /* of tool/skill.h */
};

struct skill_list {
	struct skill *items;
	size_t n, cap;
};

/* How many folders above `cwd` its repository begins, 15 at the most; 0 outside of one. The home
 * folder is no project. */
unsigned skills_project_ups(const char *cwd);
/* All skills that can be seen from `cwd` ("": no project), in order of precedence: project (of the
 * nearest folder, up to `ups` above), user, claude. AVA_ENOMEM. */
int skills_list(const char *cwd, unsigned ups, struct skill_list *out);
/* A skill, or the skills in a folder, read as a project's. AVA_ENOENT, AVA_ENOMEM. */
int skills_look(const char *path, struct skill_list *out, struct ava_error *err);
void skill_list_free(struct skill_list *l);
/* '-' equal to '_', any case. NULL: there is none; one that can be used comes before others. */
const struct skill *skill_find(const struct skill_list *l, const char *name);

#endif
