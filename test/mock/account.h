/* What the mock counted: totals for GET /stats, the newest requests for
 * GET /requests. */
#ifndef MOCK_ACCOUNT_H
#define MOCK_ACCOUNT_H

#include "convo.h"

#define ROWS 16384 /* of the newest requests */

struct row {
	uint32_t number; /* from 1; 0: free */
	uint32_t convo, messages, turn;
	enum service service;
	char model[64];
	int status; /* 0: nothing was answered */
	enum fault_kind fault;
	struct prompt_tokens tokens;
	int64_t output_tokens, start_ms, took_ms, max_tokens;
	bool done, gone; /* the reply was sent whole; the client left before */
	bool thinking;
	char error[200]; /* what was refused */
};

struct account {
	uint64_t requests, done, gone, refused, faults, prefix_broken;
	uint64_t status[600];
	int64_t input_tokens, output_tokens, cache_read_tokens, cache_write_tokens;
	int64_t cost_microusd;
	uint32_t active, active_max, connections, conversations;
	int64_t first_ms, last_ms; /* of requests, loop time; first 0: none */
	struct row *rows;
};

void account_init(struct account *a);
void account_fini(struct account *a);
void account_clear(struct account *a);                       /* what is active stays */
struct row *account_row(struct account *a, uint32_t number); /* NULL: overwritten */
/* Cost of a request in micro-USD: cache writes 1.25, reads 0.1 of the price. */
int64_t account_cost(const struct model_facts *f, struct prompt_tokens t, int64_t output);

void account_stats(const struct account *a, struct buf *out);
/* The newest `limit` rows, oldest first, as a JSON list. */
void account_requests(struct account *a, unsigned limit, struct buf *out);

#endif
