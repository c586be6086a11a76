/* The book of skills (doc/SKILLS.md; book.h): folders with a SKILL.md, of the project, of the
 * person for ava, and of the person for Claude Code. */
#ifndef SUBAGENT_SKILLBOOK_H
#define SUBAGENT_SKILLBOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "subagent/book.h"

#define SKILL_NAME_MAX    64
#define SKILL_SUMMARY_MAX 300 /* characters of a description that are shown */

struct skill {
	char *name;    /* lower case */
	char *summary; /* one line, safe to show */
	char *notes;   /* what of its front matter does not count, a line each: "3: …\n" */
	bool named;    /* only a role that names it is offered it (disable-model-invocation) */
	unsigned files;
	int64_t bytes;
	char hash[HASH_HEX_LEN + 1]; /* of tool/skill.h */
};

extern const struct book book_of_skills;

#endif
