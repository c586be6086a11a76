/* Lines typed before, in a file of the person's own (0600): one entry a line,
 * newlines and backslashes escaped. Bounded in entries and bytes. */
#ifndef CLI_LINE_HISTORY_H
#define CLI_LINE_HISTORY_H

#include <stddef.h>

struct ava_error;

#define LINE_HISTORY_ENTRIES 1000
#define LINE_HISTORY_ENTRY   4096 /* bytes; longer ones are not kept */
#define LINE_HISTORY_FILE    ((size_t)512 << 10)

/* $XDG_STATE_HOME/ava/history, else ~/.local/state/ava/history; its folders are
 * made (0700). AVA_ENOENT: no home is known. */
int line_history_path(char *out, size_t size, struct ava_error *err);

/* Each of the newest entries, oldest first; none when there is no file. A file
 * that is too long is rewritten with these alone. */
int line_history_load(const char *path, void (*each)(const char *text, void *user), void *user,
		      struct ava_error *err);
/* Append one. Entries that begin with a blank or are too long are not kept. */
int line_history_add(const char *path, const char *text, struct ava_error *err);

#endif
