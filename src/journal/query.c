/* Which events are wanted; query.h.
 *
 * The index answers from its rows which lines may be wanted (read.c); such a
 * line is asked here for the text and, since it may not be what its row tells
 * of any more, for all else once more. What can fail: a line that has the text
 * and is no event is broken, and told. */
#include "journal/query.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "journal/query_time.h"

#define PREFIX_MIN 2 /* letters of a type's name */

/* ---- compiling */

static const struct {
	const char *name;
	uint64_t types;
} aliases[] = {
	{"thinking", UINT64_C(1) << EVENT_ExtendedThinking},
	{"errors", UINT64_C(1) << EVENT_Error},
	{"erroroccurred", UINT64_C(1) << EVENT_Error},
	{"tools", UINT64_C(1) << EVENT_ToolCall | UINT64_C(1) << EVENT_ToolResult},
	{"costs", UINT64_C(1) << EVENT_CostUpdate},
	{"model", UINT64_C(1) << EVENT_InferStart | UINT64_C(1) << EVENT_InferEnd},
	{"message", UINT64_C(1) << EVENT_UserMessage | UINT64_C(1) << EVENT_AssistantMessage},
	{"messages", UINT64_C(1) << EVENT_UserMessage | UINT64_C(1) << EVENT_AssistantMessage},
};

static uint64_t types_of(const char *word, size_t len)
{
	uint64_t by_prefix = 0;

	for (int kind = 0; kind < EVENT_NKINDS; kind++) {
		const char *name = event_kind_name((enum event_kind)kind);

		if (strncasecmp(name, word, len) != 0)
			continue;
		if (strlen(name) == len)
			return UINT64_C(1) << kind;
		by_prefix |= UINT64_C(1) << kind;
	}
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (strlen(aliases[i].name) == len && strncasecmp(aliases[i].name, word, len) == 0)
			return aliases[i].types;
	return len >= PREFIX_MIN ? by_prefix : 0;
}

int query_types(const char *types, uint64_t *mask, struct ava_error *err)
{
	*mask = 0;
	for (const char *p = types; *p != '\0';) {
		size_t len = strcspn(p, ",");
		uint64_t found = types_of(p, len);

		if (found == 0)
			return err_set(err, AVA_EINVAL, "there is no event type \"%.*s\"",
				       (int)MIN(len, 60u), p);
		*mask |= found;
		p += len + (p[len] == ',');
	}
	return 0;
}

static int init_id(struct query_id *id, const char *text, const char *what, struct ava_error *err)
{
	struct buf b;

	id->len = 0;
	if (text == NULL)
		return 0;
	buf_init(&b, QUERY_ID_MAX * 6);
	json_escape(&b, text, strlen(text));
	if (buf_check(&b) == AVA_ENOMEM) {
		buf_fini(&b);
		return err_set(err, AVA_ENOMEM, "no memory for a question");
	}
	if (buf_check(&b) != 0 || b.len < 3 || b.len - 2 >= sizeof(id->text)) {
		buf_fini(&b);
		return err_set(err, AVA_EINVAL, "%s: from 1 to about %d bytes", what, QUERY_ID_MAX);
	}
	id->len = b.len - 2;
	memcpy(id->text, b.data + 1, id->len);
	id->text[id->len] = '\0';
	buf_fini(&b);
	return 0;
}

static int init_times(struct query *q, const struct ava_log_query *asked, int64_t now_ms,
		      struct ava_error *err)
{
	int rv = 0;

	if (asked->since != NULL) {
		rv = query_time(asked->since, now_ms, &q->since_ms, err);
		if (rv != 0)
			return err_wrap(err, rv, "since");
	}
	if (asked->until != NULL) {
		rv = query_time(asked->until, now_ms, &q->until_ms, err);
		if (rv != 0)
			return err_wrap(err, rv, "until");
	}
	return 0;
}

int query_init(struct query *q, const struct ava_log_query *asked, int64_t now_ms,
	       struct ava_error *err)
{
	int rv = 0;

	*q = QUERY_ALL;
	q->after = asked->after;
	if (asked->types != NULL)
		rv = query_types(asked->types, &q->types, err);
	if (rv == 0)
		rv = init_id(&q->agent, asked->agent, "agent", err);
	if (rv == 0)
		rv = init_id(&q->user, asked->user, "user", err);
	if (rv == 0)
		rv = init_id(&q->session, asked->session, "session", err);
	if (rv == 0)
		rv = init_times(q, asked, now_ms, err);
	if (rv == 0)
		rv = query_text_init(&q->text, asked->search, asked->regex, err);
	if (rv != 0)
		*q = QUERY_ALL;
	return rv;
}

void query_fini(struct query *q)
{
	query_text_fini(&q->text);
	*q = QUERY_ALL;
}

bool query_is_copied(int kind)
{
	return kind == EVENT_SubagentSpawn || kind == EVENT_SubagentComplete ||
	       kind == EVENT_Waiting || kind < 0;
}

/* ---- asking */

static bool is_id(const struct query_id *id, const char *s, size_t len)
{
	return id->len == len && memcmp(id->text, s, len) == 0;
}

static bool query_fits(const struct query *q, const struct event_view *v)
{
	return (q->after == 0 || v->lsn > q->after) && v->wall_ms >= q->since_ms &&
	       v->wall_ms < q->until_ms &&
	       (q->types == 0 || (v->kind >= 0 && (q->types >> v->kind & 1) != 0)) &&
	       (q->agent.len == 0 || is_id(&q->agent, v->agent_id.s, v->agent_id.len) ||
		is_id(&q->agent, v->trace_id.s, v->trace_id.len)) &&
	       (q->session.len == 0 || is_id(&q->session, v->session_id.s, v->session_id.len)) &&
	       (q->user.len == 0 || is_id(&q->user, v->user_id.s, v->user_id.len));
}

enum query_answer query_line(const struct query *q, const char *line, size_t len,
			     struct event_view *view)
{
	int rv = 1;

	if (q->text.needle != NULL && query_text_find(&q->text, line, len) == NULL)
		return QUERY_NO;
	if (q->text.regex != NULL)
		rv = query_text_regex(&q->text, line, len);
	if (rv != 1)
		return rv < 0 ? QUERY_COSTLY : QUERY_NO;
	if (event_view(line, len, view) != 0)
		return QUERY_BROKEN;
	return query_fits(q, view) ? QUERY_YES : QUERY_NO;
}
