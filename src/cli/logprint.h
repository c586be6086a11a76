/* How `ava logs` shows events: in each of its forms, forwards or turned
 * around, with a line of progress on a terminal while nothing is found. */
#ifndef CLI_LOGPRINT_H
#define CLI_LOGPRINT_H

#include <ava.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/logtext.h"

enum logprint_form { LOGPRINT_TEXT, LOGPRINT_JSON, LOGPRINT_PRETTY };

struct logprint_kept;
struct logprint { /* zero-initialised, then filled in */
	enum logprint_form form;
	bool reverse; /* keep all, print at the end */
	struct logtext text;
	struct logprint_kept *kept; /* owned; of `reverse` */
	size_t nkept, cap, bytes;
	int64_t shown_ms; /* when progress or an event was shown last, monotonic */
	bool progress;    /* a line of progress stands on the terminal */
};

void logprint_fini(struct logprint *p);
/* 0, AVA_ECORRUPT (named in err), AVA_ENOMEM, AVA_ETOOBIG. */
int logprint_event(struct logprint *p, const struct ava_log_event *e, struct ava_error *err);
/* What was kept. 0 or as above; goes on behind a line that fails. */
int logprint_end(struct logprint *p, struct ava_error *err);

/* May be called as often as one likes; `user` is the struct logprint. */
void logprint_progress(uint64_t done, uint64_t total, void *user);
void logprint_clear(struct logprint *p); /* takes the line of progress away */

#endif
