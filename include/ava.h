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

/* name, number, word used in JSON errors ("code"), text */
#define AVA_ERRORS(X)                                                         \
	X(AVA_OK, 0, "ok", "no error")                                        \
	X(AVA_ENOMEM, -1, "no_memory", "out of memory")                       \
	X(AVA_EINVAL, -2, "invalid", "invalid argument")                      \
	X(AVA_ENOENT, -3, "not_found", "no such thing")                       \
	X(AVA_EEXIST, -4, "exists", "already exists")                         \
	X(AVA_EBUSY, -5, "busy", "in use")                                    \
	X(AVA_EIO, -6, "io", "input or output failed")                        \
	X(AVA_EFULL, -7, "disk_full", "the disk is full")                     \
	X(AVA_EUNKNOWN, -8, "unknown", "the outcome is unknown: ask again")   \
	X(AVA_ECORRUPT, -9, "corrupt", "damaged data")                        \
	X(AVA_EFORMAT, -10, "newer_format", "written by a newer ava")         \
	X(AVA_ETOOBIG, -11, "too_big", "over a size limit")                   \
	X(AVA_EBUDGET, -12, "budget", "over a budget")                        \
	X(AVA_ECANCELED, -13, "cancelled", "cancelled")                       \
	X(AVA_ETIMEOUT, -14, "timeout", "ran out of time")                    \
	X(AVA_EREJECTED, -15, "rejected", "rejected")                         \
	X(AVA_EEXPIRED, -16, "expired", "expired")                            \
	X(AVA_EDENIED, -17, "denied", "not allowed")                          \
	X(AVA_ECONNECT, -18, "unreachable", "cannot be reached")              \
	X(AVA_EPROTO, -19, "protocol", "the other side broke the protocol")   \
	X(AVA_EUNSUPPORTED, -20, "unsupported", "not supported here")         \
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
#define AVA_STATUSES(X)                                                       \
	X(AVA_STARTING, "starting")                                           \
	X(AVA_QUEUED, "queued")                                               \
	X(AVA_RUNNING, "running")                                             \
	X(AVA_WAITING, "waiting")                                             \
	X(AVA_SUCCESS, "success")                                             \
	X(AVA_TIMEOUT, "timeout")                                             \
	X(AVA_COST_EXCEEDED, "cost_exceeded")                                 \
	X(AVA_TOKENS_EXCEEDED, "tokens_exceeded")                             \
	X(AVA_ITERATIONS_EXCEEDED, "iterations_exceeded")                     \
	X(AVA_CANCELLED, "cancelled")                                         \
	X(AVA_ERROR, "error")

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

#ifdef __cplusplus
}
#endif
#endif
