/* ava logs --cursor-file: where the last call ended, so that the next one
 * goes on there without losing or repeating an event. doc/QUERY.md. */
#ifndef CLI_LOGCURSOR_H
#define CLI_LOGCURSOR_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOGCURSOR_GIVEN 4096

struct logcursor {
	const char *path;                /* *borrowed*; NULL: there is none */
	bool known;                      /* `after` means something */
	uint64_t after;                  /* all wanted events up to here were given */
	uint64_t given[LOGCURSOR_GIVEN]; /* lsns above `after` that were given, ascending */
	size_t n;
	int64_t looked_ms; /* the files being read have all events logged before */
};

/* A missing file is an empty cursor. AVA_ECORRUPT: the file is no cursor. */
int logcursor_load(struct logcursor *c, const char *path, struct ava_error *err);
/* The event was given by an earlier call. */
bool logcursor_has(const struct logcursor *c, uint64_t lsn);
/* Note the time of a pass over the log files; call it before each pass. */
void logcursor_look(struct logcursor *c, int64_t now_ms);
/* Mark event `lsn` as given; `time_ms` is the event's. */
void logcursor_add(struct logcursor *c, uint64_t lsn, int64_t time_ms);
/* Durable when it returns 0. */
int logcursor_save(const struct logcursor *c, struct ava_error *err);

#endif
