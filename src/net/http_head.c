/* Heads of requests; http_head.h.
 *
 * libmicrohttpd has parsed them by then: fields are counted, a path is decoded in place. Nothing
 * is kept and nothing can fail. */
#include "net/http_head.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

struct head_count {
	int host, length, encoding, odd_encoding;
};

static enum MHD_Result count_cb(void *cls, enum MHD_ValueKind kind, const char *name,
				const char *value)
{
	struct head_count *c = cls;

	(void)kind;
	if (strcasecmp(name, "Host") == 0)
		c->host++;
	else if (strcasecmp(name, "Content-Length") == 0)
		c->length++;
	else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		c->encoding++;
		c->odd_encoding += !value || strcasecmp(value, "chunked") != 0;
	}
	return MHD_YES;
}

bool http_head_is_plain(struct MHD_Connection *conn, const char *version)
{
	struct head_count c = {0};

	MHD_get_connection_values(conn, MHD_HEADER_KIND, count_cb, &c);
	if (c.host == 0 && strcmp(version, "HTTP/1.1") == 0)
		return false;
	return c.host <= 1 && c.length <= 1 && c.encoding <= 1 && !c.odd_encoding &&
	       !(c.length && c.encoding);
}

bool http_head_is_whole(const char *target, size_t len, const char *version)
{
	uintptr_t begin = (uintptr_t)target, end = (uintptr_t)version;

	/* Without a version the string is empty and stands elsewhere. */
	return !*version || end <= begin || end - begin == len + 1;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

/* Decode percents as libmicrohttpd does, but leave %00: decoded it would end the string, and
 * "/a%00b" would be taken for "/a". */
size_t http_head_unescape(void *cls, struct MHD_Connection *conn, char *s)
{
	char *out = s;

	(void)cls;
	(void)conn;
	for (char *in = s; *in; in++) {
		int hi = *in == '%' ? hex(in[1]) : -1;
		int lo = hi >= 0 ? hex(in[2]) : -1;

		if (lo >= 0 && hi * 16 + lo != 0) {
			*out++ = (char)(hi * 16 + lo);
			in += 2;
		} else {
			*out++ = *in;
		}
	}
	*out = '\0';
	return (size_t)(out - s);
}
