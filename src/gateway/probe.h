/* One GET of a service's list of models, for `ava doctor`. */
#ifndef GATEWAY_PROBE_H
#define GATEWAY_PROBE_H

#include <ava.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "net/http_client.h"

struct probe { /* zeroed, then filled by probe_start; lives until probe_fini */
	struct http_pool *pool;
	struct http_call call;
	struct buf body;
	char date[64];                /* of the response; "" */
	int64_t date_wall_ms;         /* our clock when it came */
	int64_t started_ms, ended_ms; /* monotonic */
	int rv;                       /* of the call; AVA_EBUSY while it runs */
	struct ava_error err;
	json_t *models; /* ["id", …]; NULL: the answer was no such list */
};

struct probe_options {
	const char *base_url, *path; /* "/models" */
	const char *key;             /* NULL: none */
	bool anthropic;              /* x-api-key, not a bearer token */
	bool http2;
	int64_t connect_ms, total_ms;
};

/* Cannot fail: what goes wrong is in rv and err. */
void probe_start(struct probe *p, struct http_client *c, const struct probe_options *o);
bool probe_over(const struct probe *p);
/* Once it is over: reads the list, 0 or a code with a sentence in p->err. */
int probe_read(struct probe *p);
/* `id` is in the list, also as the name of its dated snapshots. */
bool probe_has(const struct probe *p, const char *id);
void probe_fini(struct probe *p);

#endif
