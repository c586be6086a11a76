/* ava.h - the public face of ava.
 *
 * Errors, run status and the version live here because every program and
 * every layer shares them. The calls of the library (embedded, connected,
 * read-only) are added by the layers that implement them.
 *
 * Conventions: functions return 0 (or a count) or a negative enum ava_code;
 * `err`, where a function takes one, may be NULL and then holds one sentence
 * without a newline. Pointers are *copied*, *borrowed until X* or *taken*. */
#ifndef AVA_H
#define AVA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AVA_API __attribute__((visibility("default")))

/* clang-format off: tables */
/* name, number, word used in JSON errors ("code"), text */
#define AVA_ERRORS(X)                                                                              \
	X(AVA_OK, 0, "ok", "no error")                                                             \
	X(AVA_ENOMEM, -1, "no_memory", "out of memory")                                            \
	X(AVA_EINVAL, -2, "invalid", "invalid argument")                                           \
	X(AVA_ENOENT, -3, "not_found", "no such thing")                                            \
	X(AVA_EEXIST, -4, "exists", "already exists")                                              \
	X(AVA_EBUSY, -5, "busy", "in use")                                                         \
	X(AVA_EIO, -6, "io", "input or output failed")                                             \
	X(AVA_EFULL, -7, "disk_full", "the disk is full")                                          \
	X(AVA_EUNKNOWN, -8, "unknown", "the outcome is unknown: ask again")                        \
	X(AVA_ECORRUPT, -9, "corrupt", "damaged data")                                             \
	X(AVA_EFORMAT, -10, "newer_format", "written by a newer ava")                              \
	X(AVA_ETOOBIG, -11, "too_big", "over a size limit")                                        \
	X(AVA_EBUDGET, -12, "budget", "over a budget")                                             \
	X(AVA_ECANCELED, -13, "cancelled", "cancelled")                                            \
	X(AVA_ETIMEOUT, -14, "timeout", "ran out of time")                                         \
	X(AVA_EREJECTED, -15, "rejected", "rejected")                                              \
	X(AVA_EEXPIRED, -16, "expired", "expired")                                                 \
	X(AVA_EDENIED, -17, "denied", "not allowed")                                               \
	X(AVA_ECONNECT, -18, "unreachable", "cannot be reached")                                   \
	X(AVA_EPROTO, -19, "protocol", "the other side broke the protocol")                        \
	X(AVA_EUNSUPPORTED, -20, "unsupported", "not supported here")                              \
	X(AVA_EINTERRUPTED, -21, "interrupted", "interrupted, may have happened")

enum ava_code {
#define X(name, number, word, text) name = number,
	AVA_ERRORS(X)
#undef X
};

struct ava_error {
	int code;
	char text[512];
};

/* Terminal status of a run; the order is part of the ABI. */
#define AVA_STATUSES(X)                                                                            \
	X(AVA_STARTING, "starting")                                                                \
	X(AVA_QUEUED, "queued")                                                                    \
	X(AVA_RUNNING, "running")                                                                  \
	X(AVA_WAITING, "waiting")                                                                  \
	X(AVA_SUCCESS, "success")                                                                  \
	X(AVA_TIMEOUT, "timeout")                                                                  \
	X(AVA_COST_EXCEEDED, "cost_exceeded")                                                      \
	X(AVA_TOKENS_EXCEEDED, "tokens_exceeded")                                                  \
	X(AVA_ITERATIONS_EXCEEDED, "iterations_exceeded")                                          \
	X(AVA_CANCELLED, "cancelled")                                                              \
	X(AVA_ERROR, "error")
/* clang-format on */

enum ava_status {
#define X(name, word) name,
	AVA_STATUSES(X)
#undef X
		AVA_NSTATUSES
};

/* Static text of a code or status; never NULL. */
AVA_API const char *ava_strerror(int code);
AVA_API const char *ava_status_name(enum ava_status status);
AVA_API const char *ava_version(void);

/* ---- Reading the log files of a data root. No daemon, no threads; one
 * thread uses a reader at a time. Files are read as they are: a caller that
 * finds no daemon alive may want `avad --recover` to run first. */

struct ava_log; /* opaque */

struct ava_log_query {
	const char *root;  /* data root; NULL: as $AVA_DATA_ROOT says; *copied* */
	const char *run;   /* "S-7f3a2b": that run; NULL: Ava's daily logs; *copied* */
	const char *types; /* names, aliases or prefixes, in any case: "tool,err"; NULL: all */
	uint64_t after;    /* only events with a greater lsn; 0: all */
	uint64_t last;     /* only the newest `last` of them; 0: all */
	int everything;    /* 1: Ava's logs and those of all runs */
	int follow;        /* 1: go on with what is written later */
	/* doc/QUERY.md has the forms. NULL: all; all are *copied* */
	const char *agent;   /* agentId ("ava", "S-7f3a2b") or the name of a trace */
	const char *user;    /* userId */
	const char *session; /* sessionId */
	const char *since;   /* "1 hour ago", yesterday, 2026-11-21, RFC 3339, ... */
	const char *until;   /* the same; events before it */
	const char *search;  /* text; case counts only when it has a capital letter */
	const char *regex;   /* PCRE2; case as above */
};

struct ava_log_event { /* borrowed until the next call on the reader */
	uint64_t lsn, seq;
	int64_t time_ms;  /* since 1970, UTC */
	char type[40];    /* "ToolCall" */
	const char *line; /* the bytes of the file, without the newline */
	size_t len;
	const char *file; /* relative to the root */
	uint64_t offset;  /* of the line in that file */
};

/* On error *log is NULL. AVA_EINVAL (run, types), AVA_ENOENT (no such log),
 * AVA_EFORMAT, AVA_EDENIED, AVA_EIO, AVA_ENOMEM. */
AVA_API int ava_log_open(struct ava_log **log, const struct ava_log_query *query,
			 struct ava_error *err);
/* Events of several files come merged by lsn, each once. 1: *event is filled.
 * 0: the end; when following: nothing more for now. AVA_ECORRUPT: a line that
 * is no event (`err` names file and offset), or a file that is missing; the
 * next call goes on behind it. Other negative codes: reading failed, close the reader. */
AVA_API int ava_log_next(struct ava_log *log, struct ava_log_event *event, struct ava_error *err);
/* Only when following, after ava_log_next gave 0: wait until there may be
 * more (1), or `timeout_ms` have passed or a signal came (0). */
AVA_API int ava_log_wait(struct ava_log *log, int timeout_ms);
AVA_API void ava_log_close(struct ava_log *log); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
