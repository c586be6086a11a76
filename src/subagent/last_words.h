/* What a run said last, for an end that has no summary of its own: a limit or
 * a cancel that falls into a call finds no reply in memory, but the record
 * knows what there is. */
#ifndef SUBAGENT_LAST_WORDS_H
#define SUBAGENT_LAST_WORDS_H

#include "base/buf.h"

/* Append the text of the newest reply in the run's log that has one (a
 * preview, redacted); nothing when there is none or the log cannot be read.
 * Blocks on the disk. */
void last_words(int root_fd, const char *run, struct buf *out);

#endif
