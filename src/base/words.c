/* The table of base/words.h. A status is looked up by the name that JSON has for it; one
 * that is not known is shown as it is. Nothing can fail.
 */
#include "base/words.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"

static const struct {
	const char *status, *words;
} statuses[] = {
	{"queued", "queued"},
	{"running", "running"},
	{"waiting", "waits for you"},
	{"success", "complete"},
	{"cancelled", "cancelled"},
	{"error", "failed"},
	{"timeout", "time limit"},
	{"cost_exceeded", "cost limit"},
	{"tokens_exceeded", "token limit"},
	{"iterations_exceeded", "reply limit"},
};

static const struct words_limit limits[] = {
	{"timeout", "time", "timeout", "--timeout"},
	{"cost_exceeded", "money", "max_cost_cents", "--max-cost-cents"},
	{"tokens_exceeded", "tokens", "max_tokens", "--max-tokens"},
	{"iterations_exceeded", "replies", "max_iterations", "--max-iterations"},
};

const char *words_status(const char *status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (strcmp(status, statuses[i].status) == 0)
			return statuses[i].words;
	return status;
}

const struct words_limit *words_limit(const char *status)
{
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (strcmp(status, limits[i].status) == 0)
			return &limits[i];
	return NULL;
}
