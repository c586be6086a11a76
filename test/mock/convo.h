/* Conversations: what the mock remembers between requests. A conversation is
 * found by the header x-mock-conversation, else by its first message; each
 * request must extend the one before: tools, system and messages byte for
 * byte, cache marks aside. The prompt cache works on the same prefixes. */
#ifndef MOCK_CONVO_H
#define MOCK_CONVO_H

#include "ask.h"
#include "base/list.h"
#include "plan.h"

struct convo {
	struct list node;   /* all, oldest first */
	struct convo *next; /* with the same key */
	uint64_t key, head; /* of the first message or the header; of tools and system */
	uint64_t tools;     /* of the first `ntools` */
	uint32_t ntools;
	uint64_t *hashes; /* of each message of the newest request */
	uint32_t n, cap;
	uint32_t id; /* from 1 */
	uint32_t requests;
	uint16_t played[PLAN_FAULTS];
	uint32_t active; /* replies being played */
	bool answered;   /* the newest request got a whole, good reply */
	bool odd;        /* its reply was odd: the question may be asked in other words */
	uint64_t sent;   /* fingerprint of that reply; 0: not compared */
	struct plan plan;
};

struct convos;
struct convos *convos_new(void);
void convos_free(struct convos *c);

/* What a fingerprint is made of: ids and names of calls, thinking. */
uint64_t fingerprint_add(uint64_t print, const char *s, size_t len);

/* Find or begin the conversation of `a`. `base` is the plan of a new one,
 * before model, rules and [[mock …]]. NULL: *v says what does not extend, or
 * which word of the plan is wrong. */
struct convo *convo_find(struct convos *c, struct ask *a, const struct plan *base,
			 const struct rules *rules, struct verdict *v);
unsigned convos_count(const struct convos *c);

/* Tokens of a request, as a cache of prefixes sees them. */
struct prompt_tokens {
	int64_t input; /* neither read from the cache nor written to it */
	int64_t cache_read, cache_write;
};
/* `ready_ms`: when the reply's first token is out; entries can be read then. */
struct prompt_tokens cache_tokens(struct convos *c, const struct ask *a, int64_t now_ms,
				  int64_t ready_ms);

#endif
