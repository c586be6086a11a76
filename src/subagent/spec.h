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
#include "provider/dialect.h"
#include "subagent/role.h"
#include "subagent/spec_group.h"

struct redact;
struct resumed;
struct settings;
struct ava_error;

/* What a person or program asks for. NULL / AVA_DEFAULT = the role's or the
 * setting's. Borrowed during the call. */
#define AVA_DEFAULT INT64_MIN
struct op_spawn {
	const char *role, *task, *context, *model, *preset, *cwd;
	const char *session_id, *request_id, *user_id, *origin;
	int64_t timeout_ms, max_cost_microusd, max_tokens, max_iterations, resume_call;
	bool extended_thinking, no_thinking;      /* none of them: the role's */
	const char *const *tools, *const *grants; /* tools NULL: the role's */
	const char *const *ask_before;            /* tools whose calls wait for a person's yes */
	size_t ntools, ngrants, nask_before;
	const json_t *output_schema;    /* NULL: any output */
	const char *confirm;            /* a policy (base/settings.h); NULL: the setting's */
	const struct spec_group *group; /* NULL: it runs alone */
	const char *resume;             /* NULL, or an ended run to go on from, at resume_call */
	const char *resume_at;          /* NULL, or that checkpoint of it, for resume_call */
	const char *on_limit;           /* "ask": a person, before it ends at one; NULL, "stop" */
};

#define SPEC_TASK_MAX    (256u << 10)
#define SPEC_CONTEXT_MAX (1u << 20)
#define MACHINE_VERSION  1

struct run_spec {
	struct arena mem; /* all strings */
	const struct role *role;
	const char *task, *context, *cwd; /* "" when none */
	const char *session_id, *request_id, *user_id, *origin, *preset;
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
	bool rights_private, rights_untrusted, rights_out;
	json_t *output_schema; /* owned; NULL: any output */
	const char *system;    /* rendered already; NULL: the template of its role */
	const char *operating; /* the runtime's own part of it, at its end */
	char *config;          /* canonical JSON; owned; NULL: forgotten (spec_forget_config) */
	size_t config_len;
	char hash[HASH_HEX_LEN + 1]; /* SHA-256 of config */
};

/* Check and resolve a request. AVA_EINVAL / AVA_EUNSUPPORTED / AVA_ETOOBIG
 * with a sentence that says what to do. `model` is the forced default or NULL.
 * Secrets in task and context are taken out, elsewhere they are refused
 * (AVA_EDENIED); `redact` NULL: none are known. */
int spec_build(struct run_spec **out, const struct op_spawn *s, const struct settings *set,
	       const char *model, const struct redact *redact, struct ava_error *err);
/* Back from its canonical JSON (a proposal, or a spec line). Sessions, users
 * and request ids are not part of it: the caller gives them. */
int spec_from_json(struct run_spec **out, const json_t *config, const char *session_id,
		   const char *request_id, const char *user_id, struct ava_error *err);
/* What an amendment line changes: {"spec":o}. AVA_EINVAL, AVA_ECORRUPT. */
int spec_amend(struct run_spec *s, const json_t *o, struct ava_error *err);
void spec_free(struct run_spec *s);
void spec_forget_config(struct run_spec *s); /* the run has begun: its hash is enough */
/* The request alone, as spec_build checks it first. */
int spec_check(const struct op_spawn *s, const struct redact *redact, struct ava_error *err);
/* The standing spec of a conversation, whose turns are no tasks of a role. */
struct op_talk {
	const struct role *role;
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
/* The next of models.fallback, from the *at-th, that can be called as this run
 * is: its dialect, with a key, and held by the same limits. false: none. */
bool spec_next_model(const struct run_spec *s, uint16_t *at, struct model *out);
/* From now on another model of the same dialect; the amendment line (with \n) that
 * says so is appended. On error nothing changed. */
int spec_switch(struct run_spec *s, const struct model *m, struct buf *line);

#endif
