/* Requests of the Anthropic service. The lines are those of the Messages form
 * (wire.c), which the offline model speaks too; what is here is the head with
 * its cache mark, the tail with thinking, the mark on the newest turn and the
 * header lines. Encoders fail with their buffer only.
 *
 * Thinking is asked for in the way the model takes (its facts and its drop
 * list); a forced tool and thinking exclude each other, so it is left out
 * then. Budgeted thinking gets half of the output, if that is enough. */
#include "provider/anthropic.h"

#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/anthropic_stream.h"
#include "provider/stream_core.h"
#include "provider/wire.h"

#define BUDGET_MIN 1024
#define MARK       "\"cache_control\":{\"type\":\"ephemeral\"}"

static bool takes(const struct model *m, const char *param)
{
	return m == NULL || model_takes(m, param);
}

int anthropic_head(struct buf *out, const struct dialect_spec *spec)
{
	const struct model *m = spec->model_facts;
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "model", m != NULL && m->wire_name[0] != 0 ? m->wire_name : spec->model);
	if (spec->system[0] != 0) {
		jw_array(&w, "system");
		jw_object(&w, NULL);
		jw_str(&w, "type", "text");
		jw_str(&w, "text", spec->system);
		if (takes(m, "cache_control"))
			jw_raw(&w, "cache_control", "{\"type\":\"ephemeral\"}", 20);
		jw_end(&w);
		jw_end(&w);
	}
	if (spec->ntools > 0) {
		jw_array(&w, "tools");
		wire_tools(&w, spec);
		jw_end(&w);
	}
	jw_array(&w, "messages"); /* the tail closes it */
	return buf_check(out);
}

static void add_thinking(struct buf *out, const struct model *m, int64_t max_output)
{
	bool budget = m->thinking == MODEL_THINKING_BUDGET;

	if (budget && !model_takes(m, "thinking.budget_tokens"))
		budget = false;
	else if (!budget && !model_takes(m, "thinking.adaptive"))
		budget = true;
	if (budget ? !model_takes(m, "thinking.budget_tokens") || max_output < 2 * BUDGET_MIN
		   : !model_takes(m, "thinking.adaptive"))
		return;
	if (budget)
		buf_addf(out, ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":%lld}",
			 (long long)(max_output / 2));
	else
		buf_adds(out, ",\"thinking\":{\"type\":\"adaptive\"}");
}

int anthropic_tail(struct buf *out, const struct model *m, bool thinking,
		   const struct agent_infer *call)
{
	bool force = call->force_submit && takes(m, "tool_choice");

	buf_addf(out, "],\"max_tokens\":%lld", (long long)call->max_output);
	if (force)
		buf_adds(out, ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"submit_result\"}");
	else if (thinking && m != NULL && m->thinking != MODEL_THINKING_NONE &&
		 model_takes(m, "thinking"))
		add_thinking(out, m, call->max_output);
	buf_adds(out, ",\"stream\":true}");
	return buf_check(out);
}

int anthropic_headers(struct buf *out, const struct model *m, const char *key)
{
	for (const char *s = key; s != NULL && *s != 0; s++)
		if (*s <= ' ' || *s == 127)
			return AVA_EINVAL;
	buf_adds(out, "content-type: application/json\naccept: text/event-stream\n"
		      "anthropic-version: " ANTHROPIC_VERSION "\n");
	if (key != NULL && key[0] != 0) {
		buf_adds(out, "x-api-key: ");
		buf_adds(out, key);
		buf_addc(out, '\n');
	}
	return buf_check(out);
}

/* A user line ends with its last block: …}]}. What does not is left alone; a
 * mark that is missing costs money, one in a wrong place a turn. */
int anthropic_mark_cache(struct buf *body, size_t lines_from, const struct model *m)
{
	static const char user[] = "{\"role\":\"user\",", other[] = "{\"role\":\"assistant\",";
	size_t len = body->len - lines_from, at;
	const char *s = body->data + lines_from;

	if (!takes(m, "cache_control") || len < sizeof(user) + 3 ||
	    memcmp(s + len - 3, "}]}", 3) != 0)
		return 0;
	/* Quotes inside strings are escaped, so these words are messages. */
	for (at = len; at > 0; at--) {
		if (s[at - 1] != '{')
			continue;
		if (memcmp(s + at - 1, other, MIN(sizeof(other) - 1, len - at + 1)) == 0)
			return 0;
		if (memcmp(s + at - 1, user, MIN(sizeof(user) - 1, len - at + 1)) == 0)
			break;
	}
	if (at == 0)
		return 0;
	body->len -= 3;
	return buf_adds(body, "," MARK "}]}");
}

const struct dialect dialect_anthropic = {
	.name = "anthropic",
	.can_force = true,
	.encode_head = anthropic_head,
	.encode_tail = anthropic_tail,
	.encode_user = wire_user,
	.encode_results = wire_results,
	.check = wire_check_paused,
	.results = wire_each_result,
	.open_calls = wire_open_calls,
	.path = "/v1/messages",
	.headers = anthropic_headers,
	.mark_cache = anthropic_mark_cache,
	.stream_new = anthropic_stream_new,
	.stream_feed = stream_feed,
	.stream_end = stream_end,
	.stream_free = stream_free,
	.stream_on_text = stream_on_text,
};
