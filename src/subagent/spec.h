/* What a run is: everything that is confirmed, resolved once from what was
 * asked for and never changed afterwards. Its canonical JSON is what a
 * proposal stores and what the config hash covers; the first line of
 * messages.jsonl is the same object with the rendered request head. */
#ifndef SUBAGENT_SPEC_H
#define SUBAGENT_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/settings.h"
#include "base/spawn_options.h"
#include "provider/dialect.h"
#include "provider/model.h"
#include "subagent/role.h"

struct jw;
struct tool;
struct redact;
struct settings;
struct ava_error;

/* Which group a run belongs to. It is confirmed with the rest and stands in the first
 * line of messages.jsonl, so that a group can be taken up from any run of it. */
#define SPEC_GROUP_MAX 100 /* runs of a group */

struct spec_group {
	const char *id;        /* "G-7f3a2b"; "" (or NULL in a request): none */
	int64_t cost_microusd; /* of all of them; -1: only each one's own limit holds */
	int64_t time_ms;       /* from the start of the first; 0: likewise */
	int index, size;       /* 1 to `size` */
	bool share;            /* may read what the others have found */
	bool chain;            /* one after another */
	unsigned given;        /* rights that the others' results bring; while it is built */
	const char *then;      /* chain: configs of those that follow, a JSON array; or NULL */
};

/* What a person or program asks for: the rows of base/spawn_options.h, and what the
 * request itself says. NULL / AVA_DEFAULT = the role's or the setting's. Borrowed during
 * the call. */
#define AVA_DEFAULT         INT64_MIN
#define SPAWN_TEXT(field)   const char *field;
#define SPAWN_MS(field)     int64_t field;
#define SPAWN_CENTS(field)  int64_t field;
#define SPAWN_COUNT(field)  int64_t field;
#define SPAWN_SWITCH(field) int field;
#define SPAWN_JSON(field)   const json_t *field;
#define SPAWN_TEXTS(field)                                                                         \
	const char *const *field;                                                                  \
	size_t n##field;
#define X(kind, field, key, ...) SPAWN_##kind(field)
struct op_spawn {
	SPAWN_OPTIONS(X)
	const char *session_id, *request_id, *user_id, *origin;
	const char *confirm; /* a policy (base/settings.h); NULL: the setting's */
	/* Rights (subagent/rights.h) that what it is told brings with it; TOOL_OUT: a model that
	 * has seen what is the person's wrote it. */
	unsigned given;
	const struct spec_group *group; /* NULL: it runs alone */
	const char *resume;             /* NULL, or an ended run to go on from, at resume_call */
	const char *resume_at;          /* NULL, or that checkpoint of it, for resume_call */
	int64_t resume_call;
	/* Of tools of MCP servers, as a config has them ("toolDefinitions"): what was confirmed
	 * once; NULL: those that the servers list now. */
	const json_t *definitions;
};
#undef X

#define SPEC_TASK_MAX    (256u << 10)
#define SPEC_CONTEXT_MAX (1u << 20)
#define MACHINE_VERSION  1

/* What a run begins with whose spec resumes another one, instead of spec_messages. */
struct resumed {
	struct buf lines; /* of messages.jsonl */
	unsigned results; /* of calls, in them */
	int64_t request_bytes;
	struct hash_sha256 prefix;
};
void resumed_free(struct resumed *r); /* NULL is allowed */

struct run_spec {
	struct arena mem;                 /* all strings */
	const struct role *role;          /* a reference */
	const char *task, *context, *cwd; /* "" when none */
	const char *session_id, *request_id, *user_id, *origin, *preset;
#define X(kind, field, ...) const char *field; /* "" when none */
	SPAWN_NOTES(X)
#undef X
	const char *resumed_from;           /* the run that it goes on from; "": none */
	const struct model *model, *shared; /* spec_set_model; the first one, counted */
	struct resumed *resumed; /* what it then begins with, until it is spawned; owned */
	struct agent_spec agent;
	const struct tool **tools, **ask_before; /* as many as `agent` says; ROLE_MAX_TOOLS */
	const char **grants;
	size_t ngrants;
	struct spec_group group;
	int64_t expected_tokens, resumed_call; /* what the quote expects; op_spawn.resume_call */
	bool thinking;
	enum settings_quota on_quota; /* agent.ask_quota says it, too */
	unsigned rights, given;       /* subagent/rights.h; of `rights` what its context brings */
	json_t *output_schema;        /* owned; NULL: any output */
	const char *system;           /* rendered already; NULL: the template of its role */
	const char *operating;        /* the runtime's own part of it, at its end: one of these, */
	const char *operatings[2];    /* the whole and the short one */
	bool brief;                   /* in its short form */
	bool later;                   /* some tools are shown only once they are needed */
	uint32_t withheld;            /* of its tools those that are not shown: a set, by `tools` */
	char *config; /* canonical JSON; owned; NULL: forgotten (spec_forget_config) */
	size_t config_len;
	char hash[HASH_HEX_LEN + 1]; /* SHA-256 of config */
};

/* Check and resolve a request. AVA_EINVAL / AVA_EUNSUPPORTED / AVA_ETOOBIG
 * with a sentence that says what to do. `model` is the forced default or NULL.
 * Secrets in task and context are taken out, elsewhere they are refused
 * (AVA_EDENIED); `redact` NULL: none are known. */
int spec_build(struct run_spec **out, const struct op_spawn *s, const struct settings *set,
	       const char *model, const struct redact *redact, struct ava_error *err);
bool spec_is_preset(const char *name);
/* What holds where the request names neither a limit nor a preset: as the settings say, else
 * as its role; of a project's role the lower one. micro-USD, ms. */
int64_t spec_cost_otherwise(const struct role *r, const struct settings *set);
int64_t spec_time_otherwise(const struct role *r, const struct settings *set);
/* Limits of time that nobody set are so many times as long with this model. */
int64_t spec_patience(const struct model *m);
int64_t spec_tokens_otherwise(const struct role *r, const struct settings *set);
int64_t spec_iterations_otherwise(const struct role *r, const struct settings *set);
/* A folder that is there, or none: AVA_EINVAL, AVA_ENOENT. */
int spec_check_cwd(const char *cwd, struct ava_error *err);
/* The request that a stored config was built from. Texts are borrowed from `config`,
 * lists stand in `mem`. AVA_ENOMEM. */
int spec_request(const json_t *config, struct op_spawn *out, struct arena *mem);
/* Back from its canonical JSON (a proposal, or a spec line). Sessions, users
 * and request ids are not part of it: the caller gives them. */
int spec_from_json(struct run_spec **out, const json_t *config, const char *session_id,
		   const char *request_id, const char *user_id, struct ava_error *err);
/* What an amendment line changes: {"spec":o}. AVA_EINVAL, AVA_ECORRUPT. */
int spec_amend(struct run_spec *s, const json_t *o, struct ava_error *err);
void spec_free(struct run_spec *s);
void spec_forget_config(struct run_spec *s); /* the run has begun: its hash is enough */
/* The standing spec of a conversation, whose turns are no tasks of a role. */
struct op_talk {
	const struct role *role; /* static */
	const struct tool *const *tools;
	unsigned ntools;    /* at most ROLE_MAX_TOOLS */
	const char *system; /* its prompt, without the next */
	/* The runtime's operating text, the second where the first is more than a
	 * twentieth of the model's window. */
	const char *operating, *operating_brief; /* static */
	const char *model;                       /* NULL: the role's */
	bool restored; /* `model` was resolved before: its key may be gone */
	const char *cwd, *session_id, *user_id;
};
/* Limits are what the conversation may use from its first turn on: the caller
 * moves them. AVA_EINVAL, AVA_EUNSUPPORTED (the model), AVA_ENOMEM. */
int spec_build_talk(struct run_spec **out, const struct op_talk *t, struct ava_error *err);

/* First lines of messages.jsonl: the spec line and the first user line, each with \n;
 * *request_bytes = head and first lines; `hash` takes in what the request begins with.
 * spec_line: the spec line alone, no message follows yet. */
int spec_messages(const struct run_spec *s, struct buf *out, int64_t *request_bytes,
		  struct hash_sha256 *hash);
int spec_line(const struct run_spec *s, struct buf *out, int64_t *request_bytes,
	      struct hash_sha256 *hash);
/* A line of messages.jsonl that is no message: {kind:{ what is written between }}\n. */
void spec_line_begin(struct jw *w, struct buf *out, const char *kind);
int spec_line_end(struct jw *w);
/* The object in "spec" of the first line; a new reference in *spec. AVA_ECORRUPT. */
int spec_first_line(const char *file, size_t len, json_t **spec, struct ava_error *err);
/* The group in it; id NULL: none. Its texts are those of `spec`. */
struct spec_group spec_group_read(const json_t *spec);
/* The next of models.fallback, from the *at-th, that can be called as this run
 * is: with a key, held by the same limits, and of its dialect unless nothing was answered yet
 * (`fresh`). false: none. */
bool spec_next_model(const struct run_spec *s, uint16_t *at, bool fresh, struct model *out);
/* May it go on with that one? Its dialect, another one, held by the same limits. */
bool spec_can_switch(const struct run_spec *s, const struct model *m);
/* From now on another model of the same dialect; the amendment line (with \n) that
 * says so is appended. On error nothing changed. */
int spec_switch(struct run_spec *s, const struct model *m, struct buf *line);
/* From now on these of its tools that were withheld are shown; likewise. */
int spec_show(struct run_spec *s, uint32_t tools, struct buf *line);

/* *m from now on. The first one is shared with other runs; one that takes its place
 * stands in the spec's own memory, and what pointed at the one before still may:
 * calls that are under way. AVA_ENOMEM: nothing changed. */
int spec_set_model(struct run_spec *s, const struct model *m, struct ava_error *err);
bool spec_granted(const struct run_spec *s, const char *grant);
/* Are the words of its context a model's that had seen what is the person's (of a chain's run
 * before it, of Ava, of the run it goes on from)? An address in them could carry that. */
bool spec_context_carries(const struct run_spec *r);
/* One of them has all three rights (subagent/rights.h), and nobody has said yes to that
 * beforehand. */
bool spec_asks_all_three(struct run_spec *const *specs, unsigned n);
/* Nothing that was quoted as asked about starts unasked. */
bool spec_asks_no_less(const struct run_spec *quoted, const struct run_spec *changed);
/* "askBefore", when there is any; "costCents", null below 0. */
void spec_ask_write(struct jw *w, const struct run_spec *r);
void spec_write_cost(struct jw *w, int64_t microusd);
void spec_write_limits(struct jw *w, const char *key, const struct agent_limits *l);
/* What is not there stays. */
void spec_read_limits(const json_t *o, struct agent_limits *l);

/* ---- what building (spec_build.c) and reading back (spec.c) share */
struct run_spec *spec_new(void);
const char *spec_keep(struct run_spec *s, const char *text); /* a copy; "" for none */
int spec_take_strings(struct run_spec *r, const struct op_spawn *s, const struct redact *redact,
		      struct ava_error *err);
int spec_take_schema(struct run_spec *r, const json_t *schema, struct ava_error *err);
void spec_take_facts(struct run_spec *r); /* of its model */
int spec_room_for_tools(struct run_spec *s, size_t n, struct ava_error *err);
/* A copy in the spec's memory, for a tool that may go; NULL: no memory. */
const struct tool *spec_own_tool(struct run_spec *r, const struct tool *t);
/* The i-th of a config's "toolDefinitions", likewise; *t NULL behind the last. AVA_ECORRUPT,
 * AVA_ENOMEM. */
int spec_defined_tool(struct run_spec *r, const json_t *definitions, size_t i,
		      const struct tool **t);
bool spec_has_tool(const struct tool *const *tools, unsigned n, const struct tool *t);
int spec_take_grants(struct run_spec *r, const struct op_spawn *s, struct ava_error *err);
/* ask_before, once its tools stand. A name that no tool has is an error (a misspelt one
 * would let calls pass); a tool that this run does not have can never be called. */
int spec_take_asks(struct run_spec *r, const struct op_spawn *s, struct ava_error *err);
/* Copy it into the spec. `g` NULL: none. AVA_EINVAL: the group has a cost limit, and
 * nobody knows the model's price. */
int spec_group_take(struct run_spec *r, const struct spec_group *g, struct ava_error *err);
int spec_seal(struct run_spec *r, struct ava_error *err); /* config and hash */
/* ---- its short form (spec_brief.c) */
#define SPEC_BRIEF_WINDOW 16384 /* tokens; for smaller windows */
/* By its model and window as they are: once, before its head is rendered. */
void spec_brief_decide(struct run_spec *r);
/* "brief" and "withheld" into an open object; back, from a spec line or an amendment. */
void spec_brief_write(struct jw *w, const struct run_spec *r);
void spec_brief_read(struct run_spec *r, const json_t *o);
/* Tools that its head shows, into `out` (ROLE_MAX_TOOLS places): those that came later behind the
 * others, so that what a server has cached of the head holds. How many. */
unsigned spec_tools_shown(const struct run_spec *r, const struct tool **out);
/* The set of the tools of these names. */
uint32_t spec_tools_named(const struct run_spec *r, const char *const *names, unsigned n);

/* AVA_EINVAL: its limits pay no call whose request has so many bytes (0: its first one): "$0.01
 * pays no call of claude-opus: at least $0.07", which is *least then, in the limit's unit. */
int spec_pays(const struct run_spec *r, int64_t bytes, int64_t *least, struct ava_error *err);

/* AVA_EINVAL: its first request is surely larger than the model's window; the sentence has the
 * numbers and what helps. */
int spec_fits(const struct run_spec *r, struct ava_error *err);

#endif
