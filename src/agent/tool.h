/* A tool's row. Pure: a tool's code lives in src/tool, one file a tool, and is reached through
 * this row only; the machine and the simulated world see nothing else. */
#ifndef AGENT_TOOL_H
#define AGENT_TOOL_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct arena;
struct mcp_client;
struct memory;
struct os_loop;
struct redact;
struct pages;
struct ava_error;

#define TOOL_REPEATABLE 1u /* running it again changes nothing: no durable wait, may run again */
#define TOOL_ENDS       2u /* submit_result: handled by the machine, never started */
#define TOOL_FILES      4u /* needs the run's cwd */
#define TOOL_ASKS       8u /* ask_person: answered by a person, never started */
/* Rights that a run has by this tool; they are part of what a person confirms. */
#define TOOL_PRIVATE   16u /* reads the person's files or data */
#define TOOL_UNTRUSTED 32u /* brings in text of strangers */
#define TOOL_OUT       64u /* can send data out */
/* A run with the grant "rw" works on a copy of the project (tool/copy.h). */
#define TOOL_PROJECT 128u /* sees the project where there is one, and has TOOL_PRIVATE then */
#define TOOL_WRITES  256u /* changes the copy: only a run with that grant has the tool */
/* Output of the tool consists of blocks made with agent/envelope.h and is not escaped again. */
#define TOOL_WEB 512u
/* The tool is of an MCP server (tool/mcp.h): a run keeps its definition, and the server looks at
 * arguments. */
#define TOOL_MCP        1024u
#define TOOL_MCP_PREFIX "mcp__"
/* Every run has the tool, whatever the task; a run with only such tools can look nothing up. */
#define TOOL_COMMON 2048u
/* In a small window the tool is shown only once it is needed (subagent/spec_brief.c). */
#define TOOL_LATER 4096u
/* As TOOL_LATER, but in any window of a model on one's own server: the tool is about runs and
 * quotes, of which there may be none. */
#define TOOL_OF_RUNS 8192u

#define TOOL_OUTPUT_MAX (64u << 10) /* most bytes for the model; the rest is an artifact */
#define TOOL_FULL_MAX   (4u << 20)  /* most bytes that a tool may produce at all */

struct tool_call;
struct turn_call;

struct tool {
	const char *name;
	const char *description; /* when to use it and when not, for the model */
	const char *schema;      /* JSON Schema of the arguments, canonical text */
	/* Arguments shown in a small window beside the required ones; NULL: all. */
	const char *brief;
	unsigned flags;
	/* Begin the call. Must not block: file and processor work goes to os_work. c->done is
	 * called exactly once on the loop, also after stop and possibly before start returns. NULL
	 * for TOOL_ENDS and TOOL_ASKS. */
	void (*start)(struct tool_call *c);
	/* The run needs the call no longer: bring `done` about soon. NULL: c->stop, which is set
	 * before, is enough. The run is not DONE before its tools are. */
	void (*stop)(struct tool_call *c);
	/* Rewrite misfit arguments to this tool's own names and forms. NULL: no such step. */
	void (*mend)(json_t *args);
	/* Write what the call does, one line for people: "Reading src/a.c". */
	void (*activity)(const json_t *args, struct buf *out);
};

#define TOOL_TIME_MS 20000 /* longest time of a call, unless tool_env.time_ms says otherwise */

/* A skill that a run was confirmed with (tool/skill.h): its folder, and the hash of all in it. */
struct tool_skill {
	const char *name, *path, *hash;
};

/* The things that a run lends to its tools, until its last call is done. */
struct tool_env {
	struct os_loop *loop;
	uint64_t order;  /* lsn of the run's spawn: older runs get threads of the pool first */
	int cwd_fd;      /* O_PATH|O_DIRECTORY; -1: this run has no file roots */
	const char *cwd; /* the folder's path, for messages only, never opened */
	/* Folders that no tool reads, ava's own, keys and data of others: by the kernel's names,
	 * NULL at the end. NULL: none. */
	const char *const *keep_out;
	const char *const *grants; /* extra permissions by a person: "rw", "fetch_any" */
	size_t ngrants;
	/* The run's own copy of the project, in whose place tools use it (cwd_fd is set then);
	 * NULL: they read the project and change nothing. */
	const char *copy;
	const char *root;   /* ava's data root; NULL: none to work in */
	char workspace[40]; /* the run's own folder below `root`, made at first use */
	int64_t time_ms;    /* longest time of a call */
	/* Text is redacted before it is cut, since half a secret is not recognised. NULL:
	 * nothing is secret. Immutable; any thread. */
	const struct redact *redact;
	/* Give the full output of an earlier call of this run, for read_result. May be called on a
	 * pool thread. 0, AVA_ENOENT, AVA_EIO. */
	int (*fetch_result)(struct tool_env *env, const char *call_id, struct buf *out,
			    struct ava_error *err);
	/* Memories (memory/memory.h), and the user whose they are; NULL: none. */
	struct memory *memory;
	const char *user_id;
	/* Report that the tool read this key: a StateRead event. Loop thread; NULL: not
	 * reported. */
	void (*state_read)(struct tool_env *env, const char *key);
	struct pages *pages;    /* tool/pages.h; NULL: this program reaches no web */
	struct mcp_client *mcp; /* tool/mcp.h; NULL: there is no server */
	/* Give the texts in the run's record to `each`: first the words of people (task, context,
	 * messages, answers), then each result of a tool. Non-zero of `each` stops and is returned.
	 * On a pool thread. NULL: no record. */
	int (*told)(struct tool_env *env,
		    int (*each)(bool person, const char *text, size_t len, void *user), void *user,
		    struct ava_error *err);
	/* Report the present activity of a tool, one line of a stranger's, for people. NULL: not
	 * reported. */
	void (*activity)(struct tool_env *env, const char *line);
	/* Report the sandbox layers of the tool's commands (SECURITY.md), JSON, for the record.
	 * NULL: not reported. */
	void (*layers)(struct tool_env *env, const char *json);
	bool unboxed; /* sandbox.required is 0: run without a sandbox where none can be had */
	/* Commands are stopped when less of the disk than this is free; 0: never. */
	int64_t disk_free_min_mb;
	bool commands; /* the run has tools that run commands in its work folder */
	const struct tool_skill *skills; /* for read_skill */
	size_t nskills;
	void *user;
};

struct tool_call {
	const struct tool *tool;
	const char *id;       /* "c3.1"; borrowed until done */
	const json_t *args;   /* checked against the schema; borrowed until done */
	struct tool_env *env; /* borrowed until done */
	/* bytes of output for the model, at most TOOL_OUTPUT_MAX; the rest is an artifact */
	size_t out_bytes;
	atomic_bool stop; /* the run needs the call no longer: finish soon */
	void (*done)(struct tool_call *c);
	void *user; /* the world's */
	void *work; /* the tool's own, while it works */

	/* The outcome, before done: text for the model, or with success false
	 * one sentence that says what to do. */
	bool success;
	int exit;                /* tool_check: the exit code; -1: it was ended, or never ran */
	const char *error_class; /* static, one of those in turn.h; "" on success */
	struct buf out;          /* initialised by the caller, max TOOL_FULL_MAX */
	/* Content that is no text, kept as an artifact "c3.1.png" of the run; initialised like
	 * `out`. */
	struct buf file;
	const char *file_type; /* static: "png", "pdf"; NULL: none */
};

/* Text forms that citations are checked against; every file tool keeps to
 * them, paths relative to cwd:
 *   search results and context lines   path:LINE:text
 *   read_file                          first line "path (lines A-B of N)",
 *                                      then "LINE\ttext" for each line     */

/* All tools (src/tool/table.c): the program's own, and those added since. A row stays as long as
 * the process, since runs point to it; a TOOL_MCP row until it is removed: runs have copies.
 * Loop thread only; the program's own are for any thread. */
extern const struct tool *const tool_table[];   /* the program's own tools, NULL-terminated */
const struct tool *tool_own(const char *name);  /* of the program's own; NULL: not one of them */
const struct tool *tool_find(const char *name); /* NULL: no such tool */
/* run_bash in the project's folder, for the check of a run (agent_io.check): no model can call it.
 * Its error class is "" or "timeout" where the command ran, else it could not be run. */
extern const struct tool tool_check;
int tool_add(const struct tool *t);        /* AVA_EEXIST, AVA_EBUSY (too many) */
void tool_remove(const struct tool *t);    /* no new run gets it */
const struct tool *tool_added(unsigned i); /* the i-th added one; NULL behind the last */
bool tool_granted(const struct tool_env *env, const char *grant);

/* Write name, description and schema (under that key) for a model, into an open object. `brief`:
 * the first sentence of each description, arguments of tool.brief only, no bounds; calls are
 * checked against the whole schema all the same. */
struct jw;
void tool_write(struct jw *w, const struct tool *t, const char *key, bool brief);

/* Check arguments against a tool's schema (codec/schema.h). Misfits are brought toward it
 * (schema_coerce; `dropped` as there), and replaced when they fit then; a server of MCP gets
 * misfits as they are. AVA_EINVAL with a sentence for the model and a call that would fit;
 * AVA_ECORRUPT: the schema is invalid; AVA_ENOMEM. */
int tool_fit_args(const struct tool *t, json_t **args, struct buf *dropped, struct ava_error *err);
/* As tool_fit_args, for a call as it arrived and its tool (NULL: any object will do); c->args
 * becomes the text of the arguments for the tool, NULL when they are no object. */
int tool_take_args(struct turn_call *c, struct arena *mem, struct buf *dropped,
		   struct ava_error *err);
/* An example call that fits, {"name": …, "arguments": …}: a new reference. */
json_t *tool_example(const struct tool *t);
/* Set err to `why` with a call that would fit. 0, AVA_ENOMEM. */
int tool_tell_misfit(const struct tool *t, const char *why, struct ava_error *err);

#endif
