/* What is wanted of the head of a request beyond what libmicrohttpd checks. */
#ifndef NET_HTTP_HEAD_H
#define NET_HTTP_HEAD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/* Is there one way to read it? False: a Host is missing (libmicrohttpd's own answer to that has
 * a second one inside), or fields contradict each other. */
bool http_head_is_plain(struct MHD_Connection *conn, const char *version);

/* Is the target all of what stood before the version? A raw NUL in it ends the string, and what
 * follows would be dropped unseen. `len`: its bytes when it came (MHD_OPTION_URI_LOG_CALLBACK);
 * both stand where libmicrohttpd read them, one behind the other. */
bool http_head_is_whole(const char *target, size_t len, const char *version);

/* For MHD_OPTION_UNESCAPE_CALLBACK. */
size_t http_head_unescape(void *cls, struct MHD_Connection *conn, char *s);

#endif
