/* Quotes: the time and cost that a spawn should take, from the last 50 ended runs of its
 * role, below 5 from the limits (half the time limit to all of it). */
#ifndef SUBAGENT_QUOTE_H
#define SUBAGENT_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "subagent/spec.h"

#define QUOTE_HISTORY 50
#define QUOTE_ROLES   8

struct quote_history {
	char role[32];
	uint32_t ms[QUOTE_HISTORY]; /* durations of the newest runs; a ring */
	unsigned n, at;
};

struct quotes {
	struct quote_history roles[QUOTE_ROLES];
	unsigned nroles;
	bool unboxed;                /* sandbox.required is 0: each quote with commands says so */
	const char *const *keep_out; /* as in tool_env; *borrowed*; NULL: none */
};

/* Add an ended run of `role`: at the start from the whole catalog, then at each end.
 * Roles beyond QUOTE_ROLES are quoted from their limits. */
void quotes_add(struct quotes *q, const char *role, int64_t duration_ms);

struct quote {
	int minutes_min, minutes_max; /* at least 1 */
	int64_t cost_microusd;        /* the most; -1: unknown, so the limit of tokens holds */
	int64_t tokens;
};

/* In which order the runs of a group come: "side by side". */
const char *quote_how(struct run_spec *const *specs, unsigned n, bool brief);
/* The quote of a proposal: n runs of one group (its limits stand in each spec), or one alone. */
void quote_make(const struct quotes *q, struct run_spec *const *specs, unsigned n,
		struct quote *out);
/* The quote as JSON (doc/api.yaml); a group's has "members". */
int quote_encode(struct buf *out, const struct quotes *q, struct run_spec *const *specs,
		 unsigned n);
/* The quote as a person reads it. `id`: of the proposal. `changed`: its differences to the quote
 * that it replaces, in words; NULL: it replaces none. */
int quote_text(struct buf *out, const struct quotes *q, struct run_spec *const *specs, unsigned n,
	       const char *id, const char *changed);
/* The folder, and the words that quote_text leaves out or cuts, whole: the rest of what is
 * confirmed. */
int quote_rest(struct buf *out, struct run_spec *const *specs, unsigned n);
/* The one tool without which no run has all three rights; NULL: there is no such one. */
const char *quote_split(struct run_spec *const *specs, unsigned n);
/* Does a quote leave out words of this request, of one of n runs (0: one alone)? A model may have
 * put into them what it has seen. quote_hides_task: of the task of a spec. */
bool quote_hides(const struct op_spawn *s, size_t n);
bool quote_hides_task(const struct run_spec *s);
/* The text that is confirmed: the config of the one run, or {"group":{…},"members":[…]}. */
int quote_config(struct buf *out, struct run_spec *const *specs, unsigned n);

/* ---- shared by quote.c and quote_text.c */
struct repository;
#define QUOTE_NAMES_MAX (ROLE_MAX_TOOLS * SPEC_GROUP_MAX)
/* The names of the tools of all the runs, or of their grants, each once. */
unsigned quote_names_of(struct run_spec *const *specs, unsigned n, bool grants,
			const char *names[QUOTE_NAMES_MAX]);
bool quote_runs_commands(struct run_spec *const *specs, unsigned n);
/* Git's folder outside of the project, which commands of the run can read; NULL: there is none. */
const char *quote_git(const struct quotes *q, struct run_spec *const *s, struct repository *r);

#endif
