/* What makes a process fit to be the daemon, before it opens anything. */
#ifndef GATEWAY_PROCESS_H
#define GATEWAY_PROCESS_H

#include <stddef.h>

struct ava_error;

/* Descriptors 0 to 2 are open, files are the owner's alone, no folder is kept
 * busy, no core file shows the keys, SIGPIPE is an error of write, as many
 * descriptors as there may be. */
int process_prepare(struct ava_error *err);
/* The number in `text` when it is an open descriptor above 2 (it is then
 * closed on exec); else -1. */
int process_descriptor(const char *text);
size_t process_descriptors(void); /* how many may be open */

#endif
