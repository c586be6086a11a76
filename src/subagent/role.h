/* Roles: what a kind of subagent may use and how much of it (DESIGN section
 * 8). A role lists only tools that exist in this program; one without its
 * core tools is shown, not proposed. */
#ifndef SUBAGENT_ROLE_H
#define SUBAGENT_ROLE_H

#include <stdbool.h>
#include <stdint.h>

struct ava_error;
struct tool;

#define ROLE_MAX_TOOLS 16

struct role {
	const char *name;    /* "code_reviewer" */
	const char *display; /* "CodeReviewer" */
	const char *summary;
	const char *model;                 /* alias */
	const char *tools[ROLE_MAX_TOOLS]; /* wished for; NULL-terminated */
	const char *core[4];               /* without these it is not proposed */
	int64_t timeout_s, cost_cents;
	bool thinking;
};

extern const struct role *const role_table[]; /* NULL-terminated */

/* By name, '-' equal to '_', or by display name; NULL: none such. */
const struct role *role_find(const char *name);

/* The tools a run of this role gets: its own that exist, then those all have.
 * Without `files` those that need a working folder are left out. Returns how
 * many were put into `out` (ROLE_MAX_TOOLS places). */
unsigned role_tools(const struct role *r, bool files, const struct tool **out);

/* 0, or AVA_EUNSUPPORTED naming the core tool that is missing. */
int role_usable(const struct role *r, bool files, struct ava_error *err);

#endif
