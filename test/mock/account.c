/* Totals and rows of the mock, and their JSON.
 *
 * Rows are a ring: number n stands in slot n % ROWS. Nothing here fails but
 * for want of memory, which ends the program. */
#include "account.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void account_init(struct account *a)
{
	*a = (struct account){.rows = calloc(ROWS, sizeof *a->rows)};
	assert(a->rows != NULL);
}

void account_fini(struct account *a)
{
	free(a->rows);
}

void account_clear(struct account *a)
{
	uint32_t active = a->active;
	struct row *rows = a->rows;

	*a = (struct account){.rows = rows, .active = active, .active_max = active};
	memset(rows, 0, ROWS * sizeof *rows);
}

struct row *account_row(struct account *a, uint32_t number)
{
	struct row *r = &a->rows[number % ROWS];

	return number != 0 && r->number == number ? r : NULL;
}

int64_t account_cost(const struct model_facts *f, struct prompt_tokens t, int64_t output)
{
	int64_t in = t.input * f->input_price + t.cache_write * f->input_price * 5 / 4 +
		     t.cache_read * f->input_price / 10;

	return (in + output * f->output_price) / 1000000;
}

void account_stats(const struct account *a, struct buf *out)
{
	bool first = true;

	buf_addf(out,
		 "{\"requests\":%llu,\"done\":%llu,\"gone\":%llu,\"refused\":%llu,\"faults\":%llu,"
		 "\"prefixBroken\":%llu,\"conversations\":%u,\"active\":%u,\"activeMax\":%u,",
		 (unsigned long long)a->requests, (unsigned long long)a->done,
		 (unsigned long long)a->gone, (unsigned long long)a->refused,
		 (unsigned long long)a->faults, (unsigned long long)a->prefix_broken,
		 a->conversations, a->active, a->active_max);
	buf_addf(out,
		 "\"inputTokens\":%lld,\"outputTokens\":%lld,\"cacheReadTokens\":%lld,"
		 "\"cacheWriteTokens\":%lld,\"costMicroUsd\":%lld,\"firstMs\":%lld,\"lastMs\":%lld,"
		 "\"status\":{",
		 (long long)a->input_tokens, (long long)a->output_tokens,
		 (long long)a->cache_read_tokens, (long long)a->cache_write_tokens,
		 (long long)a->cost_microusd, (long long)a->first_ms, (long long)a->last_ms);
	for (int i = 0; i < 600; i++)
		if (a->status[i] != 0) {
			buf_addf(out, "%s\"%d\":%llu", first ? "" : ",", i,
				 (unsigned long long)a->status[i]);
			first = false;
		}
	buf_adds(out, "}}\n");
}

static void row_json(const struct row *r, struct buf *out)
{
	static const char *const services[] = {"anthropic", "openai", "openrouter", "local"};

	buf_addf(out, "{\"number\":%u,\"conversation\":%u,\"service\":\"%s\",\"model\":", r->number,
		 r->convo, services[r->service]);
	quote_json(out, r->model, strlen(r->model));
	buf_addf(out,
		 ",\"status\":%d,\"messages\":%u,\"turn\":%u,\"thinking\":%s,\"maxTokens\":%lld,"
		 "\"fault\":\"%s\",\"done\":%s,\"gone\":%s,\"startMs\":%lld,\"tookMs\":%lld,",
		 r->status, r->messages, r->turn, r->thinking ? "true" : "false",
		 (long long)r->max_tokens, fault_name(r->fault), r->done ? "true" : "false",
		 r->gone ? "true" : "false", (long long)r->start_ms, (long long)r->took_ms);
	buf_addf(out,
		 "\"inputTokens\":%lld,\"cacheReadTokens\":%lld,\"cacheWriteTokens\":%lld,"
		 "\"outputTokens\":%lld,\"error\":",
		 (long long)r->tokens.input, (long long)r->tokens.cache_read,
		 (long long)r->tokens.cache_write, (long long)r->output_tokens);
	quote_json(out, r->error, strlen(r->error));
	buf_addc(out, '}');
}

void account_requests(struct account *a, unsigned limit, struct buf *out)
{
	uint64_t from = a->requests > limit ? a->requests - limit + 1 : 1;
	bool first = true;

	buf_addc(out, '[');
	for (uint64_t n = from; n <= a->requests; n++) {
		const struct row *r = account_row(a, (uint32_t)n);

		if (r == NULL)
			continue;
		buf_adds(out, first ? "\n" : ",\n");
		row_json(r, out);
		first = false;
	}
	buf_adds(out, "\n]\n");
}
