/* Entries of a session file: the form of pi, version 3, with the lifecycle of
 * subagents beside the conversation (doc/SESSIONS.md). Pure encoders; each
 * appends one JSON text without its \n. `parentId` is null in it: the journal
 * fills it in when the entry is written (journal/view.h). */
#ifndef SUBAGENT_SESSION_ENTRY_H
#define SUBAGENT_SESSION_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>
#include "base/buf.h"
#include "codec/json.h"

struct model;
struct turn;
struct turn_call;

#define SESSION_ENTRY_ID 20

struct session_entry {
	const char *id; /* 8 hex digits or more; unique in its file */
	int64_t wall_ms;
	const char *request; /* request id of the message; NULL or "": none */
	const char *shown;   /* Ask that stood before the words; NULL or "": none */
};

/* The first line; `id` is the session's, `origin` the door where it was begun. */
int session_header(struct buf *out, const char *id, int64_t wall_ms, const char *cwd,
		   const char *user, const char *origin);
int session_user(struct buf *out, const struct session_entry *e, const char *text, size_t len);
/* Text, thinking and calls of a reply; usage as billed. */
int session_assistant(struct buf *out, const struct session_entry *e, const struct turn *t,
		      const struct model *m);
/* A turn that ended without an answer; `sentence` says why, `stopped`: the
 * person did it. pi's own form for the same. */
int session_failure(struct buf *out, const struct session_entry *e, const struct model *m,
		    bool stopped, const char *sentence);
/* Another model is chosen from here on. */
int session_model(struct buf *out, const struct session_entry *e, const struct model *m);
/* ava's id of the model that such a line, or an answer, names, with or without its service in
 * front. false: no known model. */
bool session_model_read(const json_t *line, char *id, size_t size);
int session_tool_result(struct buf *out, const struct session_entry *e, const struct turn_call *c);

/* A subagent's start and its end. */
struct session_agent_event {
	const char *run, *requested_by, *role, *model;
	const char *mode;                 /* "single", "parallel", "chain" */
	int64_t started_ms, completed_ms; /* wall; completed_ms 0: the run starts */
	int64_t duration_ms, input, output, cache_read, cache_write,
		cost_microusd; /* -1: unknown */
	enum ava_status status;
	const char *summary, *result; /* result: a path below the data root */
};
int session_agent_event(struct buf *out, const struct session_entry *e,
			const struct session_agent_event *a);

/* "sessions/--<cwd>--/<time>_<id>.jsonl" below the data root: the working
 * folder without its first slash, with '-' for characters that a path of the
 * journal cannot hold, cut at SESSION_FOLDER_MAX. 0 or AVA_ETOOBIG. */
#define SESSION_FOLDER_MAX 100
int session_path(char *out, size_t size, const char *cwd, int64_t wall_ms, const char *id);
/* The id in the name of a session file; NULL: it is none. */
const char *session_path_id(const char *name, size_t *len);

#endif
