/* A run's position in its log, and the way back: a run that another process had
 * begun stands where its record ends, and goes on as if nothing had been. */
#ifndef SUBAGENT_RESTORE_H
#define SUBAGENT_RESTORE_H

#include <stdint.h>

#include "base/buf.h"
#include "provider/messages.h"

struct ava_error;
struct draft;
struct jw;
struct run;

struct restored {
	bool started;    /* it has called a model: a machine stands */
	int64_t last_ms; /* of the newest event, wall */
};

/* `r` as supervisor_adopt made it, from its log; then, if it was started, its machine
 * from the messages too: `file` is messages.jsonl, `body` and `info` what
 * messages_request made of it; NULL: they cannot be read, only totals are restored.
 * What a stop cut off is closed with the run's next commit (restore_note). AVA_ENOMEM;
 * AVA_ECORRUPT: the log was changed, or the two do not fit together. */
int restore_run(struct run *r, const char *file, size_t len, const struct buf *body,
		const struct messages_info *info, struct restored *out, struct ava_error *err);

#endif
