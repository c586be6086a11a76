/* A dialect: how one kind of model service is spoken to. Pure encoders and
 * scanners; no sockets here. A request body is
 *     head + lines of messages.jsonl joined by commas + tail
 * so that each request extends the last one byte for byte. */
#ifndef PROVIDER_DIALECT_H
#define PROVIDER_DIALECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/turn.h"
#include "base/buf.h"

struct tool;
struct ava_error;

struct dialect_spec {       /* borrowed during encode_head */
	const char *model;  /* as the service names it */
	const char *system; /* rendered system prompt */
	const struct tool *const *tools;
	unsigned ntools;
};

struct dialect_answer {    /* of a local dialect */
	struct turn *turn; /* caller takes it */
	int64_t delay_ms;  /* when it shall arrive */
};

struct dialect {
	const char *name; /* "offline"; stands in the spec line */
	bool can_force;   /* encode_tail honours force_submit */

	/* From "{" to "\"messages\":[": system and tools, rendered once at spawn. */
	int (*encode_head)(struct buf *out, const struct dialect_spec *spec);
	/* From "]" to "}": what may differ from call to call. */
	int (*encode_tail)(struct buf *out, const struct agent_infer *call);
	/* One user message. */
	int (*encode_user)(struct buf *out, const char *text, size_t len);
	/* The results of all calls of `t` in order, then the notices: one or
	 * several JSON texts joined by \n. */
	int (*encode_results)(struct buf *out, const struct turn *t, const char *const *notices,
			      unsigned nnotices);
	/* Every call has exactly one result in the next message and no result
	 * is without its call; roles alternate as the service demands. `lines`
	 * are the JSON texts joined by commas. AVA_EINVAL naming the first
	 * fault: the request must not leave. */
	int (*check)(const char *lines, size_t len, struct ava_error *err);
	/* Each tool result in `lines`, in order: our k-th call (from 0) has the
	 * k-th result. `text` is unescaped and borrowed during `each`, which
	 * returns non-zero to stop (passed on). */
	int (*results)(const char *lines, size_t len,
		       int (*each)(size_t k, const char *text, size_t len, bool is_error,
				   void *user),
		       void *user, struct ava_error *err);
	/* The calls of the last assistant message that have no result yet, as
	 * a turn to answer (wire_id, name, args in `t->mem`); none: ncalls 0. */
	int (*open_calls)(const char *lines, size_t len, struct turn *t, struct ava_error *err);
	/* Local dialects answer themselves: a function of the body alone.
	 * `config` is what follows the name in the model id ("FILE.jsonl" of
	 * offline:FILE.jsonl), "" when nothing does. NULL for remote ones. */
	int (*answer)(const char *body, size_t len, const char *config, struct dialect_answer *out,
		      struct ava_error *err);
};

extern const struct dialect dialect_offline;

/* ---- models: alias or id -> dialect, wire name, price. */
struct model {
	char id[264];     /* canonical: "offline", "offline:FILE", "anthropic/…" */
	char config[256]; /* after the colon of offline:FILE: an absolute path */
	const struct dialect *dialect;
	struct agent_price price; /* offline: all 0 */
	int64_t max_output;       /* per call */
	int64_t context;          /* window, tokens */
};

/* `name` an id, an alias (claude-haiku …) or NULL for the default. Without a
 * configured provider everything resolves to offline; *why (static) says so.
 * AVA_EINVAL: unknown model. */
int model_resolve(const char *name, struct model *out, const char **why, struct ava_error *err);

/* ---- classifier (provider/classify.c): which role fits a task; pure. */
const char *classify_role(const char *task, size_t len); /* "researcher" … never NULL */

#endif
