/* Checks of a request's head beyond those of libmicrohttpd. */
#ifndef NET_HTTP_HEAD_H
#define NET_HTTP_HEAD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/* Can the head be read in one way only? false: a Host is missing (libmicrohttpd's own answer to
 * that has a second one inside), or fields contradict each other. */
bool http_head_is_plain(struct MHD_Connection *conn, const char *version);

/* Does the target reach to the version? A raw NUL ends the string early, and the rest would be
 * dropped unseen. `len`: its bytes when it came (MHD_OPTION_URI_LOG_CALLBACK); both stand where
 * libmicrohttpd read them, one behind the other. */
bool http_head_is_whole(const char *target, size_t len, const char *version);

/* Decode %XX in `s`, in place, but not %00, for MHD_OPTION_UNESCAPE_CALLBACK; returns the
 * length. */
size_t http_head_unescape(void *cls, struct MHD_Connection *conn, char *s);

#endif
