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

struct ava_error;
struct model;
struct stream_ops;
struct tool;

struct dialect_spec {       /* borrowed during encode_head */
	const char *model;  /* the model's name at the service */
	const char *system; /* the rendered system prompt */
	const struct tool *const *tools;
	unsigned ntools;
	const struct model *model_facts; /* NULL: nothing known; local dialects need none */
	bool thinking;
	bool brief; /* send tools in their short form */
};

struct dialect_answer {    /* what a local dialect answers */
	struct turn *turn; /* taken by the caller */
	int64_t delay_ms;  /* simulated delay of the answer */
};

/* The author of a stored line. */
enum line_kind { LINE_NONE /* no message: an amendment */, LINE_USER, LINE_REPLY };

struct dialect {
	const char *name;  /* "offline"; the spec line of a run has it */
	bool can_force;    /* encode_tail honours force_submit */
	bool line_an_item; /* a reply may be several stored lines, one behind the other */

	/* Write from "{" to "\"messages\":[", or past a system message and its comma: system and
	 * tools, rendered once at spawn. */
	int (*encode_head)(struct buf *out, const struct dialect_spec *spec);
	/* Write from "]" to "}": what may differ from call to call, and every parameter that a
	 * repair may leave out (model_takes). `m` NULL: nothing is known. */
	int (*encode_tail)(struct buf *out, const struct model *m, bool thinking,
			   const struct agent_infer *call);
	/* Tell the kind of one line of messages.jsonl. */
	enum line_kind (*line_kind)(const char *line, size_t len);
	/* Write one user message. */
	int (*encode_user)(struct buf *out, const char *text, size_t len);
	/* Write the results of all calls of `t` in order, then the notices: one or several JSON
	 * texts joined by \n. */
	int (*encode_results)(struct buf *out, const struct turn *t, const char *const *notices,
			      unsigned nnotices);
	/* Check that every call has exactly one result in the next message, that no result is
	 * without its call, and that roles alternate as the service demands. `lines` are the JSON
	 * texts joined by commas. AVA_EINVAL naming the first fault: the request must not leave. */
	int (*check)(const char *lines, size_t len, struct ava_error *err);
	/* Give each tool result in `lines`, in order: our k-th call (from 0) has the k-th result.
	 * `text` is unescaped and borrowed during `each`, which returns non-zero to stop (passed
	 * on). */
	int (*results)(const char *lines, size_t len,
		       int (*each)(size_t k, const char *text, size_t len, bool is_error,
				   void *user),
		       void *user, struct ava_error *err);
	/* Read the last assistant message, its text and its calls without a result, as a turn to
	 * answer (wire_id, name, args in `t->mem`); none: ncalls 0, "". */
	int (*open_calls)(const char *lines, size_t len, struct turn *t, struct ava_error *err);
	/* Answer a request, by a function of the body alone; NULL for remote dialects. `config` is
	 * the text behind the name in the model id ("FILE.jsonl" of offline:FILE.jsonl), else
	 * "". */
	int (*answer)(const char *body, size_t len, const char *config, struct dialect_answer *out,
		      struct ava_error *err);

	/* ---- remote dialects; NULL in local ones. */
	const char *path; /* path of a call under the base URL: "/v1/messages" */
	/* Write header lines "Name: value\n". `key` NULL: none is needed. AVA_EINVAL for a key that
	 * cannot stand in a header. The bytes hold the key: wipe them. */
	int (*headers)(struct buf *out, const struct model *m, const char *key);
	/* Put a cache mark on the newest turn of a request that is built up to its tail and whose
	 * lines begin at `lines_from`; the mark is never stored. Does nothing where the service
	 * needs none. Parts of head and lines that the model rejects are removed, which makes
	 * `lines_from` invalid. */
	int (*mark_cache)(struct buf *body, size_t lines_from, const struct model *m);
	/* Is the parameter one that mark_cache can leave out? NULL: no parameter is. */
	bool (*in_lines)(const char *parameter);
	const struct stream_ops *stream; /* reader of the service's replies */
};

extern const struct dialect dialect_offline, dialect_anthropic, dialect_openai, dialect_responses;

/* ---- classifier (provider/classify.c): which role fits a task; pure. */
const char *classify_role(const char *task, size_t len); /* "researcher" … never NULL */

#endif
