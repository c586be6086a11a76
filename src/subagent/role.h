/* A role: the instructions of a kind of subagent, the tools that it wishes for and its
 * limits. Each is a Markdown file with front matter in the form of Claude Code's agent
 * files (doc/ROLES.md), the built-in ones too, which stand in the program as they stand in
 * roles/: one form, one reader. A role never changes once it is read; runs hold the
 * one they were confirmed with, whatever becomes of the file. */
#ifndef SUBAGENT_ROLE_H
#define SUBAGENT_ROLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/list.h"

struct tool;
struct ava_error;

#define ROLE_MAX_TOOLS   24 /* tools of a run */
#define ROLE_WISHES_MAX  32 /* tools named in a file */
#define ROLE_SKILLS_MAX  16
#define ROLE_NOTES_MAX   24
#define ROLE_NAME_MAX    48
#define ROLE_SUMMARY_MAX 240
#define ROLE_FILE_MAX    65536u

enum role_source {
	ROLE_BUILTIN,
	ROLE_PROJECT, /* <project>/.claude/agents: unused until a person trusts it */
	ROLE_USER,    /* $XDG_CONFIG_HOME/ava/agents */
	ROLE_CLAUDE,  /* ~/.claude/agents */
};
extern const char *const role_sources[]; /* "built-in", "project", "user", "claude" */

/* A line of a file that does not do what its author may think. */
struct role_note {
	unsigned line;
	const char *text;
};

struct role {
	const char *name;                       /* "code_reviewer" */
	const char *display;                    /* "CodeReviewer" */
	const char *summary;                    /* one line, safe to show */
	const char *model;                      /* alias or id; ROLE_INHERIT */
	const char *tools[ROLE_WISHES_MAX + 1]; /* the role wishes for these; NULL-terminated */
	const char *core[4];                    /* the role needs these: no proposal without */
	const char *instructions;               /* safe to show; "" in a record that has none */
	const char *schema;                     /* JSON schema of the output; NULL: any output */
	const char *on_quota;                   /* static; NULL: as the settings say */
	const char *check;                      /* command that proves a result; NULL: none */
	int64_t timeout_s, cost_cents;
	int64_t tokens, iterations; /* 0: as the settings say */
	bool thinking;
	const char *skills[ROLE_SKILLS_MAX + 1]; /* with skills_said: those it is offered */
	bool skills_said;                        /* else all that there are */
	bool no_instructions; /* runs read no AGENTS.md and are offered no skills */
	bool no_folder; /* runs get no folder, whichever is asked for: no files of the person's */
	enum role_source source;
	const char *path;            /* the role's file; "": built in */
	char hash[HASH_HEX_LEN + 1]; /* SHA-256 of the file's bytes; "": a record that has none */
	struct role_note notes[ROLE_NOTES_MAX];
	unsigned nnotes;
	/* ---- how it is kept (role.c) */
	struct list node;
	struct arena mem;
	unsigned users; /* references; 0: static, never freed */
};

#define ROLE_INHERIT "inherit" /* the model of the conversation, else the default */

/* Read a file's bytes. `path` (copied) begins every sentence: "…/x.md:3: …". A new
 * reference in *out. AVA_EINVAL with file, line and reason; AVA_ETOOBIG; AVA_ENOMEM. */
int role_read(const struct role **out, const char *path, const char *text, size_t len,
	      enum role_source source, struct ava_error *err);
const struct role *role_hold(const struct role *r); /* a further reference; returns r */
void role_release(const struct role *r);            /* NULL is fine; any thread */
/* '-' equal to '_', any case. */
bool role_name_is(const struct role *r, const char *name);
/* The same file's content. */
bool role_same(const struct role *a, const struct role *b);

/* The role in a config: written into an open object, and back as a new reference. Fields that
 * an older record lacks are taken from `like`, which may be NULL and lives as long as the
 * process. NULL: no memory, or no name of a role. */
struct jw;
void role_write(struct jw *w, const struct role *r);
const struct role *role_restore(const json_t *config, const struct role *like);

/* Does the role wish for a tool of this name? "mcp__fs__*" and "mcp__fs": all of the server fs. */
bool role_wishes(const struct role *r, const char *name);

/* The tools of a run of this role: its own that exist, the common ones, then those
 * of servers. Without `files` tools that need a working folder are left out.
 * Returns how many were put into `out` (ROLE_MAX_TOOLS places). */
unsigned role_tools(const struct role *r, bool files, const struct tool **out);

/* 0, or AVA_EUNSUPPORTED naming the core tool that is missing. */
int role_usable(const struct role *r, bool files, struct ava_error *err);

#endif
