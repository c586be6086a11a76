/* State that the rooms of `ava doctor` share while it looks: doctor.c has the machine, the settings
 * and the order of the lines, doctor_models.c the services, the models and the places of local
 * servers. A line is written as soon as it is known. */
#ifndef GATEWAY_DOCTOR_STATE_H
#define GATEWAY_DOCTOR_STATE_H

#include "ava/house.h"
#include "ava/otel.h"
#include "codec/json.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "provider/model.h"

struct exec_child;
struct mcp_client;
struct redact;

#define CONNECT_MS 5000 /* of a service */
#define TOTAL_MS   15000
#define PROBES     12
#define TRIALS     4 /* models that are tried, at the most */
#define NOTED      2 /* `ok` of a check: what is missing is optional */

/* A GET of a list of models, {"data":[{"id":…},…]}, from a service that has its key or from the
 * address of a possible local server; or an empty POST, which shows whether the address for calls
 * exists. */
struct probe {
	const struct provider *p; /* NULL: the probe has only an address */
	const char *kind;         /* the kind of local server; NULL: none */
	char base_url[PROVIDER_URL_MAX];
	bool post, search; /* search: look for SearXNG, without a query, which it would pass on */
	struct http_pool *pool;
	struct http_call call;
	struct buf body;
	char date[64];                /* date in the response; "": none */
	int64_t date_wall_ms;         /* our wall clock when `date` came */
	int64_t started_ms, ended_ms; /* monotonic */
	int rv;                       /* result of the call; AVA_EBUSY while it runs */
	struct ava_error err;
	json_t *models; /* ["id", …]; NULL: the answer was no list of models */
};

struct doctor_state {
	const char *page_lacks;
	struct config config;
	struct probe probes[PROBES];
	size_t nprobes;
	struct otel_sender *sender; /* the call to the collector of traces */
	bool otel_over;
	struct otel_answer otel;
	struct ava_error otel_err;  /* why the collector could not be asked */
	struct buf variables;       /* names to report, with a blank between two */
	struct exec_child *command; /* the command that tries the sandbox */
	struct ava_error sandbox;   /* why no sandbox works; code 0: the text names its layers */
	struct mcp_client *mcp;     /* client that starts all servers, as a quote does */
	struct redact *secrets;     /* the secrets in mcp.json */
	struct ava_error mcp_err;
	bool paid; /* try services that cost money, too */
	char tried[TRIALS][sizeof(((struct model *)0)->id)];
	size_t ntried;
	struct os_loop *loop;
	struct http_client *client;
	struct jw *w;
};

/* Write a line: `ok` 0, 1 or NOTED. */
void doctor_check(struct doctor_state *d, const char *name, int ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Ask each service that has its key, and each place where a local server may listen, for its
 * models. */
void doctor_models_ask(struct doctor_state *d, struct http_client *c);
void doctor_models_learned(struct doctor_state *d); /* limits that were learned */
/* Lines of what they answered; models that are named are tried. `forced`: AVA_MODEL, or NULL. */
void doctor_models_check(struct doctor_state *d, const char *forced);
void doctor_models_places(struct doctor_state *d);       /* the line about local servers */
void doctor_models_write_places(struct doctor_state *d); /* "local_servers" */

#endif
