/* A model service for the simulated runtime: net/http_client.h on one side, the
 * strict checks and the replies of test/mock on the other, no socket between them.
 * It bills what a service bills: a reply that breaks off, too, and one that nobody
 * is left to read. */
#ifndef SIM_SERVICE_H
#define SIM_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct service_temper { /* thousandths, but `heavy` */
	int refuse;     /* 429, 500, 529 */
	int cut;        /* the connection breaks, or nothing more comes */
	int slow;       /* up to two minutes */
	bool edits;     /* conversations are shortened: none need extend what was sent before */
	int64_t heavy;  /* tokens of output that a reply may report, at most */
};
extern struct service_temper service_temper;

/* Called with each request that leaves; or NULL. */
extern void (*service_heard)(const char *body, size_t len);

struct service_bill {
	char request_id[40];
	int64_t input, output, cost_microusd;
	bool whole;    /* the reply, to its end */
	bool recorded; /* the judge's */
	int64_t kept;  /* the driver's */
};

/* Called with a reply when its request leaves; and when it does not come to its end in a process
 * that lives, which then has an estimate. Or NULL. */
extern void (*service_billed)(struct service_bill *b);
extern void (*service_broken)(struct service_bill *b);

void service_begin(void);
void service_end(void);
const struct service_bill *service_bills(size_t *n);
struct service_bill *service_find(const char *request_id);
size_t service_requests(void);
/* What was wrong with a request; "" nothing. */
const char *service_refused(void);

#endif
