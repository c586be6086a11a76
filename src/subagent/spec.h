/* The spec of a run: everything that is confirmed, resolved once from the
 * request and never changed afterwards. A proposal stores its canonical JSON,
 * over which the config hash is taken; the first line of
 * messages.jsonl is the same object with the name of the rendered request head. */
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
#include "subagent/after.h"
#include "subagent/role.h"

struct jw;
struct tool;
struct redact;
struct settings;
struct ava_error;

/* The group of a run. It is confirmed with the rest and stands in the first line of
 * messages.jsonl, so that a group can be taken up from any run of it. */
#define SPEC_GROUP_MAX AFTER_MAX /* runs of a group */

struct spec_group {
	const char *id;         /* "G-7f3a2b"; "" (or NULL in a request): none */
	int64_t cost_microusd;  /* for all runs together; -1: only their own limits hold */
	int64_t time_ms;        /* from the start of the first run; 0: only their own limits hold */
	int index, size;        /* number of the run, from 1; how many there are */
	bool share;             /* each run may read what the others have found */
	bool chain;             /* the runs go one after another: `after` says so of each */
	unsigned given;         /* rights that the others' results bring; only for building */
	const char *name;       /* of the run in its group; "" (or NULL in a request): none */
	struct after_set after; /* the run begins when these have succeeded */
};

/* The standing order of a run: "O-5d09c41e" and its plan as JSON (subagent/order.h); "": none. */
struct spec_order {
	const char *id, *plan;
};

/* The request of a person or program: the rows of base/spawn_options.h, and the fields of
 * the request itself. NULL / AVA_DEFAULT = the role's or the setting's. Borrowed during the
 * call. */
#define AVA_DEFAULT         INT64_MIN
#define SPAWN_TEXT(field)   const char *field;
#define SPAWN_MS(field)     int64_t field;
#define SPAWN_CENTS(field)  int64_t field;
#define SPAWN_COUNT(field)  int64_t field;
#define SPAWN_ROUNDS(field) int64_t field;
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
	/* Rights (subagent/rights.h) that task and context bring with them; TOOL_OUT: a model that
	 * has seen what is the person's wrote them. */
	unsigned given;
	const struct spec_group *group; /* NULL: the run is alone */
	const char *resume;             /* NULL, or an ended run to go on from, at resume_call */
	const char *resume_at;          /* NULL, or a checkpoint of that run, for resume_call */
	int64_t resume_call;
	const json_t *order; /* NULL, or the plan of a standing order (subagent/order.h) */
	/* The confirmed tools of MCP servers, from a config ("toolDefinitions"); NULL: those that
	 * the servers list now. */
	const json_t *definitions;
	const json_t
		*guide; /* with `resume`: the "guide" of that run's config; NULL: it had none */
};
#undef X

#define SPEC_TASK_MAX    (256u << 10)
#define SPEC_CONTEXT_MAX (1u << 20)
#define MACHINE_VERSION  1

/* The beginning of a run that resumes another one, instead of spec_messages. */
struct resumed {
	struct buf lines; /* first lines of messages.jsonl */
	unsigned results; /* number of results of calls in `lines` */
	int64_t request_bytes;
	struct hash_sha256 prefix;
	const char *context; /* what the run begins with, in the spec's memory; NULL: the spec's */
};
void resumed_free(struct resumed *r); /* NULL is allowed */

struct run_spec {
	struct arena mem;                 /* holds all strings */
	const struct role *role;          /* a reference */
	const char *task, *context, *cwd; /* "" when none */
	const char *session_id, *request_id, *user_id, *origin, *preset;
#define X(kind, field, ...) const char *field; /* "" when none */
	SPAWN_NOTES(X)
#undef X
	const char *tags; /* with a blank between two; "" when none */
	struct spec_order order;
	const char *resumed_from;           /* the run to go on from; "": none */
	const struct model *model, *shared; /* the model now; the first one, a reference */
	struct resumed *resumed; /* what a resuming run begins with, until the spawn; owned */
	struct agent_spec agent;
	const struct tool **tools, **ask_before; /* as `agent` counts; ROLE_MAX_TOOLS at most */
	const char **grants;
	size_t ngrants;
	struct spec_group group;
	int64_t expected_tokens, resumed_call; /* for the quote; op_spawn.resume_call */
	bool thinking;
	enum settings_quota on_quota; /* agent.ask_quota is true for QUOTA_ASK */
	json_t *guide; /* what the person's files say (spec_guide.c); owned; NULL: nothing */
	const struct tool_skill *skills; /* those of `guide`, for tool_env */
	size_t nskills;
	unsigned rights, given;    /* subagent/rights.h; given: those that the context brings */
	json_t *output_schema;     /* owned; NULL: any output */
	const char *system;        /* rendered system prompt; NULL: the template of the role */
	const char *operating;     /* the runtime's text behind `system`: one of operatings */
	const char *operatings[2]; /* the whole text and the short one */
	bool brief;                /* the request's head has its short form (spec_brief.c) */
	bool later;                /* some tools are shown only once they are needed */
	uint32_t withheld;         /* the tools not shown now: a set, by `tools` */
	char *config;              /* canonical JSON; owned; NULL: forgotten (spec_forget_config) */
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
/* Limits if the request names neither a limit nor a preset: the settings', else the role's; for
 * a project's role the lower one. micro-USD, ms. */
int64_t spec_cost_otherwise(const struct role *r, const struct settings *set);
int64_t spec_time_otherwise(const struct role *r, const struct settings *set);
/* A default limit of time is so many times as long with this model. */
int64_t spec_patience(const struct model *m);
int64_t spec_tokens_otherwise(const struct role *r, const struct settings *set);
int64_t spec_iterations_otherwise(const struct role *r, const struct settings *set);
/* `cwd` must be "" or NULL, or an existing folder: AVA_EINVAL, AVA_ENOENT. */
int spec_check_cwd(const char *cwd, struct ava_error *err);
/* The request that a stored config was built from. Texts are borrowed from `config`,
 * lists stand in `mem`. AVA_ENOMEM. */
int spec_request(const json_t *config, struct op_spawn *out, struct arena *mem);
/* Back from its canonical JSON (a proposal, or a spec line). Sessions, users
 * and request ids are not part of it: the caller gives them. */
int spec_from_json(struct run_spec **out, const json_t *config, const char *session_id,
		   const char *request_id, const char *user_id, struct ava_error *err);
/* Apply the amendment line {"spec":o}. AVA_EINVAL, AVA_ECORRUPT. */
int spec_amend(struct run_spec *s, const json_t *o, struct ava_error *err);
void spec_free(struct run_spec *s);
void spec_forget_config(struct run_spec *s); /* the run has begun: its hash is enough */
/* The standing spec of a conversation, whose turns are no tasks of a role. */
struct op_talk {
	const struct role *role; /* static */
	const struct tool *const *tools;
	unsigned ntools;    /* at most ROLE_MAX_TOOLS */
	const char *system; /* Ava's prompt, without the operating text */
	/* The runtime's operating text; `operating_brief` if it would take more than a
	 * twentieth of the model's window. */
	const char *operating, *operating_brief; /* static */
	const char *model;                       /* NULL: the role's */
	bool restored; /* `model` was resolved before, and is taken even if its key is gone */
	const char *cwd, *session_id, *user_id;
};
/* Limits count from the conversation's first turn on: the caller moves them.
 * AVA_EINVAL, AVA_EUNSUPPORTED (the model), AVA_ENOMEM. */
int spec_build_talk(struct run_spec **out, const struct op_talk *t, struct ava_error *err);

/* First lines of messages.jsonl: the spec line and the first user line, each with \n;
 * *request_bytes = head and first lines; `hash`: over head and first lines of the request.
 * spec_line: the spec line alone, no message follows yet. */
int spec_messages(const struct run_spec *s, struct buf *out, int64_t *request_bytes,
		  struct hash_sha256 *hash);
int spec_line(const struct run_spec *s, struct buf *out, int64_t *request_bytes,
	      struct hash_sha256 *hash);
/* A line of messages.jsonl that is no message: {kind:{ … }}\n, filled between the two. */
void spec_line_begin(struct jw *w, struct buf *out, const char *kind);
int spec_line_end(struct jw *w);
/* The first user line, without \n: task, context and what else differs between runs of a role. */
int spec_user_line(const struct run_spec *s, struct buf *out);
/* Adds `more` to the context, and appends the amendment line that says so, which stands right
 * behind the spec line. AVA_ENOMEM, AVA_ETOOBIG. */
int spec_add_context(struct run_spec *s, const char *more, struct buf *out);
/* The object in "spec" of the first line, with the context that the run began with; a new reference
 * in *spec. AVA_ECORRUPT. */
int spec_first_line(const char *file, size_t len, json_t **spec, struct ava_error *err);
/* The group in a spec line; id NULL: none. Its texts are those of `spec`. */
struct spec_group spec_group_read(const json_t *spec);
/* "after":[1,2] where it waits for others; back from that list. */
void spec_after_write(struct jw *w, const struct after_set *after);
struct after_set spec_after_read(const json_t *list);
/* The next of models.fallback, from the *at-th, that this run can call: with a key, held by the
 * same limits, and of the run's dialect unless no reply has come yet (`fresh`). false: none. */
bool spec_next_model(const struct run_spec *s, uint16_t *at, bool fresh, struct model *out);
/* May the run go on with `m`? Another model of its dialect, held by the same limits. */
bool spec_can_switch(const struct run_spec *s, const struct model *m);
/* Change to another model of the same dialect, and append the amendment line (with \n)
 * that says so. On error nothing changed. */
int spec_switch(struct run_spec *s, const struct model *m, struct buf *line);
/* Show these withheld tools from now on, and append the amendment line likewise. */
int spec_show(struct run_spec *s, uint32_t tools, struct buf *line);

/* Use model *m from now on. The first model is shared with other runs; a later one
 * stands in the spec's own memory, and the one before stays valid for calls that are
 * under way. AVA_ENOMEM: nothing changed. */
int spec_set_model(struct run_spec *s, const struct model *m, struct ava_error *err);
bool spec_granted(const struct run_spec *s, const char *grant);
/* Did a model that had seen what is the person's write words of its context (the run before it in
 * a chain, Ava, the run it goes on from)? An address in them could carry that out. */
bool spec_context_carries(const struct run_spec *r);
/* Has a run all three rights (subagent/rights.h) without GRANT_ALL_THREE, a yes given
 * beforehand? */
bool spec_asks_all_three(struct run_spec *const *specs, unsigned n);
/* Does each tool that the quoted spec asks about still need a yes in the changed one? */
bool spec_asks_no_less(const struct run_spec *quoted, const struct run_spec *changed);
/* "askBefore", when there is any; "costCents", null below 0. */
void spec_ask_write(struct jw *w, const struct run_spec *r);
/* The check, for a config and a quote; nothing where there is none. */
void spec_write_check(struct jw *w, const struct run_spec *r);
int spec_take_check(struct run_spec *r, const char *command, int64_t rounds, struct ava_error *err);
void spec_write_cost(struct jw *w, int64_t microusd);
void spec_write_limits(struct jw *w, const char *key, const struct agent_limits *l);
/* Limits that `o` lacks stay. */
void spec_read_limits(const json_t *o, struct agent_limits *l);

/* ---- shared by building (spec_build.c) and reading back (spec.c) */
struct run_spec *spec_new(void);
/* A copy in the spec's memory; "" for NULL. NULL: out of memory. */
const char *spec_keep(struct run_spec *s, const char *text);
/* The plan of an order as it is. AVA_ENOMEM: the spec stays as it was. */
int spec_keep_order(struct run_spec *s, const json_t *plan);
int spec_take_strings(struct run_spec *r, const struct op_spawn *s, const struct redact *redact,
		      struct ava_error *err);
int spec_take_schema(struct run_spec *r, const json_t *schema, struct ava_error *err);
void spec_take_facts(struct run_spec *r); /* sets what `agent` says of the model */
int spec_room_for_tools(struct run_spec *s, size_t n, struct ava_error *err);
/* A copy of a tool that a server may remove, in the spec's memory; NULL: no memory. */
const struct tool *spec_own_tool(struct run_spec *r, const struct tool *t);
/* The i-th of a config's "toolDefinitions", likewise; *t NULL behind the last. AVA_ECORRUPT,
 * AVA_ENOMEM. */
int spec_defined_tool(struct run_spec *r, const json_t *definitions, size_t i,
		      const struct tool **t);
bool spec_has_tool(const struct tool *const *tools, unsigned n, const struct tool *t);
/* Is it a tag: "name", or "key=value"? */
bool spec_is_tag(const char *tag);
int spec_take_tags(struct run_spec *r, const struct op_spawn *s, struct ava_error *err);
int spec_take_grants(struct run_spec *r, const struct op_spawn *s, struct ava_error *err);
/* ask_before, once its tools stand. A name that no tool has is an error (a misspelt one
 * would let calls pass); a tool that this run does not have can never be called. */
int spec_take_asks(struct run_spec *r, const struct op_spawn *s, struct ava_error *err);
/* Copy the group into the spec; `g` NULL: none. AVA_EINVAL: the group has a cost limit,
 * and the model's price is unknown. */
int spec_group_take(struct run_spec *r, const struct spec_group *g, struct ava_error *err);
int spec_seal(struct run_spec *r, struct ava_error *err); /* sets config and hash */
/* The members of the canonical JSON, into an open object. */
void spec_write_config(struct jw *w, const struct run_spec *r);
void spec_write_price(struct jw *w, const struct agent_price *p); /* "price" */
/* ---- instruction files and skills (spec_guide.c, doc/SKILLS.md) */
#define SPEC_GUIDE_TOOL "read_skill"
/* Find them for a run whose folder, role, model, tools and group stand; a run that has skills gets
 * SPEC_GUIDE_TOOL, for which there is room behind its tools. AVA_ENOMEM. */
int spec_guide_find(struct run_spec *r, const struct op_spawn *s, const struct settings *set,
		    const struct redact *redact, struct ava_error *err);
/* Back from "guide" of a config; NULL: there was none. AVA_ENOMEM. */
int spec_guide_take(struct run_spec *r, const json_t *guide, struct ava_error *err);
/* The part of the first message; "" when there is none, or after spec_guide_forget. */
const char *spec_guide_text(const struct run_spec *r);
/* The first message is written: of the guide only the skills are needed from now on. */
void spec_guide_forget(struct run_spec *r);
bool spec_guide_same(const struct run_spec *a, const struct run_spec *b);
/* Is one of its files or skills another one by now, or gone? Looks at the disk. */
bool spec_guide_changed(const struct run_spec *r);
/* ---- the short form of a request's head (spec_brief.c) */
#define SPEC_BRIEF_WINDOW 16384 /* tokens; a smaller window gets the short form */
/* Choose the form by model and window: once, before the head is rendered. */
void spec_brief_decide(struct run_spec *r);
/* "brief" and "withheld" into an open object; back, from a spec line or an amendment. */
void spec_brief_write(struct jw *w, const struct run_spec *r);
void spec_brief_read(struct run_spec *r, const json_t *o);
/* Puts the tools that the head shows into `out` (ROLE_MAX_TOOLS places); how many. Those shown
 * later stand behind the others, so that a server's cache of the head holds. */
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
