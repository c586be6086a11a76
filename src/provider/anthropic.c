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
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/anthropic_stream.h"
#include "provider/stream_core.h"
#include "provider/wire.h"

#define BUDGET_MIN 1024
#define LOOKBACK   18 /* blocks; a little less than the service's 20 */
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

static const char user_line[] = "{\"role\":\"user\",", other_line[] = "{\"role\":\"assistant\",";

static bool begins(const char *s, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

/* All of it is one value; arguments of a call may hold what looks like a line. */
static bool is_line(const char *s, size_t len)
{
	struct slice line;
	struct jscan w;

	jscan_init(&w, s, len);
	return jscan_skip(&w, &line) && line.len == len;
}

/* Where the last line begins, when it is the user's and can be marked; len: it
 * cannot. Quotes inside strings are escaped, so these words are members. A
 * user line ends with its last block: …}]}. What does not is left alone; a mark
 * that is missing costs money, one in a wrong place a turn. */
static size_t newest_turn(const char *s, size_t len)
{
	size_t at = len;

	if (len < 3 || memcmp(s + len - 3, "}]}", 3) != 0)
		return len;
	while (at-- > 0) {
		if (s[at] == '{' && begins(s + at, len - at, other_line))
			return len;
		if (s[at] == '{' && begins(s + at, len - at, user_line))
			return is_line(s + at, len - at) ? at : len;
	}
	return len;
}

/* Where the last user line among s[0..len) ends; 0: there is none. */
static size_t turn_before(const char *s, size_t len)
{
	struct slice line;
	struct jscan w;
	size_t end = 0;

	jscan_init(&w, s, len);
	w.last = '['; /* as if the head had just opened the array */
	while (jscan_peek(&w) != 0 && jscan_item(&w) && jscan_skip(&w, &line))
		if (begins(line.s, line.len, user_line))
			end = (size_t)(line.s - s) + line.len;
	return w.failed || end < 3 || memcmp(s + end - 3, "}]}", 3) != 0 ? 0 : end;
}

/* Blocks that begin in s[0..len); what stands inside of one counts too. */
static unsigned count_blocks(const char *s, size_t len)
{
	static const char begin[] = "{\"type\":\"";
	const char *end = s + len;
	unsigned n = 0;

	while ((s = memmem(s, (size_t)(end - s), begin, sizeof(begin) - 1)) != NULL) {
		s += sizeof(begin) - 1;
		n++;
	}
	return n;
}

/* Into the block whose last bracket is at `at`. */
static int insert_mark(struct buf *body, size_t at)
{
	static const char mark[] = "," MARK;
	size_t len = body->len, n = sizeof(mark) - 1;
	int rv = buf_add(body, mark, n);

	if (rv == 0) {
		memmove(body->data + at + n, body->data + at, len - at);
		memcpy(body->data + at, mark, n);
	}
	return rv;
}

bool anthropic_in_lines(const char *parameter)
{
	return strcmp(parameter, "cache_control") == 0;
}

/* The head's own mark, of a service that takes none. In texts the quotes are
 * escaped, so only the mark looks like it. */
static void unmark_head(struct buf *body, size_t head)
{
	static const char mark[] = "," MARK;
	const size_t n = sizeof(mark) - 1;
	char *at = memmem(body->data, head, mark, n);

	if (at == NULL)
		return;
	memmove(at, at + n, (size_t)(body->data + body->len - at) - n);
	body->len -= n;
	body->data[body->len] = 0;
}

/* The service looks for a known prefix no further back than 20 blocks. When a
 * turn has more, results and their calls, the one before is marked as well: the
 * last request ended there. */
int anthropic_mark_cache(struct buf *body, size_t lines_from, const struct model *m)
{
	const char *s = body->data + lines_from;
	size_t len = body->len - lines_from, newest, before = 0;
	int rv;

	if (!takes(m, "cache_control")) {
		unmark_head(body, lines_from);
		return 0;
	}
	newest = newest_turn(s, len);
	if (newest == len)
		return 0;
	if (newest > 1 && 2 * count_blocks(s + newest, len - newest) > LOOKBACK)
		before = turn_before(s, newest - 1);
	rv = insert_mark(body, body->len - 3);
	if (rv == 0 && before > 0)
		rv = insert_mark(body, lines_from + before - 3);
	return rv;
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
	.in_lines = anthropic_in_lines,
	.stream_new = anthropic_stream_new,
	.stream_feed = stream_feed,
	.stream_end = stream_end,
	.stream_free = stream_free,
	.stream_on_text = stream_on_text,
};
