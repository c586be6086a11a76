/* What the offline model says of a log: read_ava_logs in a few sentences. */
#ifndef PROVIDER_OFFLINE_LOGS_H
#define PROVIDER_OFFLINE_LOGS_H

#include <stddef.h>

struct buf;

/* `text` is what read_ava_logs returned; a NUL follows it. Returns buf_check(out). */
int offline_tell_log(struct buf *out, const char *text, size_t len);

#endif
