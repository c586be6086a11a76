/* Query arguments, read strictly: one that a route does not know, that is
 * given twice or that is not what it should be is an error that names it. */
#ifndef GATEWAY_PARAMS_H
#define GATEWAY_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct http_request;

enum params_name {
	PARAMS_ALL = 1,   /* ?all, ?all=1, ?all=0 */
	PARAMS_LIMIT = 2, /* 1 to PARAMS_LIMIT_MAX */
	PARAMS_WAIT = 4,  /* seconds; over an hour is an hour */
	PARAMS_AFTER = 8, /* an lsn; or the header field Last-Event-ID */
	PARAMS_SESSION = 16,
	PARAMS_CHANNEL = 32,
	PARAMS_OWN = 64, /* the route reads its arguments itself */
};

#define PARAMS_LIMIT_MAX   100000
#define PARAMS_WAIT_MAX_MS 3600000

struct params {
	bool all;
	size_t limit; /* default 100 */
	int64_t wait_ms;
	bool has_after;
	uint64_t after;
	char session[64]; /* "": none */
	char channel[32]; /* likewise */
};

/* `takes`: the names the route knows, or-ed. AVA_EINVAL. */
int params_read(const struct http_request *req, unsigned takes, struct params *out,
		struct ava_error *err);

#endif
