/* The mock's own addresses, for tests and people:
 *   GET  /stats[?clear]              totals
 *   GET  /requests[?limit=N][&clear] the newest requests
 *   POST /plan                       rules for conversations that begin later
 *   GET  /v1/models, /api/v1/models, /local/v1/models, /local/api/tags
 * A rule that cannot be read is a 400 that says why. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "serve.h"

static void answer(struct exchange *x, int status, struct buf *body)
{
	serve_answer(x, status, "content-type: application/json\n", body);
}

static bool asked(const struct ask *a, const char *word)
{
	return strstr(a->query, word) != NULL;
}

static void stats(struct serve *s, struct exchange *x, struct buf *out)
{
	bool clear = asked(x->ask, "clear");

	account_stats(&s->account, out);
	if (clear)
		account_clear(&s->account);
}

static void requests(struct serve *s, struct exchange *x, struct buf *out)
{
	const char *limit = strstr(x->ask->query, "limit=");
	bool clear = asked(x->ask, "clear");

	account_requests(&s->account, limit ? (unsigned)strtoul(limit + 6, NULL, 10) : ROWS, out);
	if (clear)
		account_clear(&s->account);
}

static int set_plan(struct serve *s, struct exchange *x, struct buf *out)
{
	char why[160] = "";
	struct rules *rules =
		rules_read(x->body.data ? x->body.data : "", x->body.len, why, sizeof why);

	if (rules == NULL) {
		buf_adds(out, "{\"error\":");
		quote_json(out, why, strlen(why));
		buf_adds(out, "}\n");
		return 400;
	}
	rules_free(s->rules);
	s->rules = rules;
	buf_adds(out, "{}\n");
	return 200;
}

static const char *const anthropic_names[] = {"claude-opus-4-7", "claude-sonnet-4-6",
					      "claude-sonnet-4-5", "claude-haiku-4-5"};
static const char *const other_names[] = {"gpt-5", "gpt-4o", "qwen3:8b",
					  "anthropic/claude-sonnet-4.5"};

static void models(struct exchange *x, struct buf *out)
{
	bool anthropic = x->ask->version[0] != '\0';
	const char *const *names = anthropic ? anthropic_names : other_names;

	buf_adds(out, anthropic ? "{\"data\":[" : "{\"object\":\"list\",\"data\":[");
	for (size_t i = 0; i < 4; i++)
		if (anthropic)
			buf_addf(out,
				 "%s{\"type\":\"model\",\"id\":\"%s\",\"display_name\":\"%s\","
				 "\"created_at\":\"2026-01-01T00:00:00Z\"}",
				 i ? "," : "", names[i], names[i]);
		else
			buf_addf(out,
				 "%s{\"id\":\"%s\",\"object\":\"model\",\"created\":1761000000,"
				 "\"owned_by\":\"mock\"}",
				 i ? "," : "", names[i]);
	buf_adds(out,
		 anthropic ? "],\"has_more\":false,\"first_id\":null,\"last_id\":null}" : "]}");
}

bool control_request(struct serve *s, struct exchange *x)
{
	const char *path = x->ask->path;
	size_t len = strlen(path);
	struct buf out;
	int status = 200;

	buf_init(&out, 64u << 20);
	if (strcmp(path, "/stats") == 0)
		stats(s, x, &out);
	else if (strcmp(path, "/requests") == 0)
		requests(s, x, &out);
	else if (strcmp(path, "/plan") == 0 && strcmp(x->ask->method, "POST") == 0)
		status = set_plan(s, x, &out);
	else if (strcmp(path, "/local/api/tags") == 0)
		buf_adds(&out, "{\"models\":[{\"name\":\"qwen3:8b\",\"model\":\"qwen3:8b\"}]}");
	else if (strcmp(path, "/local/health") == 0)
		buf_adds(&out, "{\"status\":\"ok\"}");
	else if (len >= 10 && strcmp(path + len - 10, "/v1/models") == 0)
		models(x, &out);
	else {
		buf_fini(&out);
		return false;
	}
	answer(x, status, &out);
	buf_fini(&out);
	return true;
}
