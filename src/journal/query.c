/* Which events are wanted; query.h.
 *
 * Happy path: of a line that is not wanted only the front is read. The keys
 * of an event stand in one order (doc/events.json), so that time, lsn and
 * type are found by position, and times compare as text. Ids come next, then
 * the literal and the expression; only a line that passed all is taken apart.
 *
 * What can fail: a line without that front, or without the end of an event,
 * is broken whatever was asked, and told; so is a wanted line whose middle is
 * not an event's. */
#include "journal/query.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "journal/query_time.h"

#define HEAD     "{\"timestamp\":\""
#define HEAD_LSN "\",\"lsn\":"
#define HEAD_SEQ ",\"seq\":"
#define HEAD_TYP ",\"eventType\":\""
#define HEAD_AGT "\",\"agentId\":\""
#define HEAD_SES "\",\"sessionId\":\""
#define HEAD_TRC "\",\"traceId\":\""
#define HEAD_USR "\",\"userId\":\""

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

static int init_times(struct query *q, const struct query_spec *spec, struct ava_error *err)
{
	int rv = 0;

	if (spec->since != NULL) {
		rv = query_time(spec->since, spec->now_ms, &q->since_ms, err);
		if (rv != 0)
			return err_wrap(err, rv, "since");
		clock_iso(q->since_ms, q->since);
	}
	if (spec->until != NULL) {
		rv = query_time(spec->until, spec->now_ms, &q->until_ms, err);
		if (rv != 0)
			return err_wrap(err, rv, "until");
		clock_iso(q->until_ms, q->until);
	}
	return 0;
}

int query_init(struct query *q, const struct query_spec *spec, struct ava_error *err)
{
	int rv = 0;

	*q = QUERY_ALL;
	q->after = spec->after;
	if (spec->types != NULL)
		rv = query_types(spec->types, &q->types, err);
	if (rv == 0)
		rv = init_id(&q->agent, spec->agent, "agent", err);
	if (rv == 0)
		rv = init_id(&q->user, spec->user, "user", err);
	if (rv == 0)
		rv = init_id(&q->session, spec->session, "session", err);
	if (rv == 0)
		rv = init_times(q, spec, err);
	if (rv == 0)
		rv = query_text_init(&q->text, spec->search, spec->regex, err);
	if (rv != 0)
		*q = QUERY_ALL;
	return rv;
}

void query_fini(struct query *q)
{
	query_text_fini(&q->text);
	*q = QUERY_ALL;
}

bool query_narrows(const struct query *q)
{
	return q->types != 0 || q->since[0] != '\0' || q->until[0] != '\0' || q->agent.len > 0 ||
	       q->user.len > 0 || q->session.len > 0 || q->text.needle != NULL ||
	       q->text.regex != NULL;
}

bool query_is_copied(int kind)
{
	return kind == EVENT_SubagentSpawn || kind == EVENT_SubagentComplete ||
	       kind == EVENT_Waiting || kind < 0;
}

/* ---- asking */

struct front {
	const char *time; /* CLOCK_ISO_LEN bytes */
	uint64_t lsn;
	const char *type;
	size_t type_len;
};

static inline bool skip_text(const char **p, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - *p) < len || memcmp(*p, text, len) != 0)
		return false;
	*p += len;
	return true;
}

#define SKIP(p, end, literal) skip_text(p, end, literal, sizeof(literal) - 1)

static inline bool read_number(const char **p, const char *end, uint64_t *n)
{
	const char *start = *p;

	*n = 0;
	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, (uint64_t)(**p - '0'), n))
			return false;
	return *p > start;
}

static inline bool line_front(const char *line, size_t len, struct front *f)
{
	const char *p = line, *end = line + len;
	uint64_t seq;

	if (!SKIP(&p, end, HEAD) || end - p < CLOCK_ISO_LEN)
		return false;
	f->time = p;
	p += CLOCK_ISO_LEN; /* looked at closely when the line is wanted */
	if (!SKIP(&p, end, HEAD_LSN) || !read_number(&p, end, &f->lsn))
		return false;
	if (!SKIP(&p, end, HEAD_SEQ) || !read_number(&p, end, &seq))
		return false;
	if (!SKIP(&p, end, HEAD_TYP))
		return false;
	f->type = p;
	while (p < end && *p != '"') /* a dozen letters: faster than a call */
		p++;
	f->type_len = (size_t)(p - f->type);
	return p < end;
}

bool query_lsn(const char *line, size_t len, uint64_t *lsn)
{
	struct front f;

	if (!line_front(line, len, &f))
		return false;
	*lsn = f.lsn;
	return true;
}

/* The string that begins at *p, up to its quote. */
static bool take_string(const char **p, const char *end, const char **s, size_t *len)
{
	*s = *p;
	while (*p < end && **p != '"')
		*p += **p == '\\' && end - *p > 1 ? 2 : 1;
	*len = (size_t)(*p - *s);
	return *p < end;
}

static bool is_id(const struct query_id *id, const char *s, size_t len)
{
	return id->len == len && memcmp(id->text, s, len) == 0;
}

static enum query_answer ask_ids(const struct query *q, const struct front *f, const char *end)
{
	const char *p = f->type + f->type_len, *agent, *session, *trace, *user;
	size_t agent_len, session_len, trace_len, user_len;

	if (!SKIP(&p, end, HEAD_AGT) || !take_string(&p, end, &agent, &agent_len) ||
	    !SKIP(&p, end, HEAD_SES) || !take_string(&p, end, &session, &session_len) ||
	    !SKIP(&p, end, HEAD_TRC) || !take_string(&p, end, &trace, &trace_len) ||
	    !SKIP(&p, end, HEAD_USR) || !take_string(&p, end, &user, &user_len))
		return QUERY_BROKEN;
	if (q->agent.len > 0 && !is_id(&q->agent, agent, agent_len) &&
	    !is_id(&q->agent, trace, trace_len))
		return QUERY_NO;
	if (q->session.len > 0 && !is_id(&q->session, session, session_len))
		return QUERY_NO;
	return q->user.len == 0 || is_id(&q->user, user, user_len) ? QUERY_YES : QUERY_NO;
}

static enum query_answer ask_text(const struct query *q, const char *line, size_t len,
				  bool no_needle)
{
	int rv;

	if (q->text.needle != NULL && (no_needle || query_text_find(&q->text, line, len) == NULL))
		return QUERY_NO;
	if (q->text.regex == NULL)
		return QUERY_YES;
	rv = query_text_regex(&q->text, line, len);
	return rv < 0 ? QUERY_COSTLY : rv > 0 ? QUERY_YES : QUERY_NO;
}

enum query_answer query_line(const struct query *q, const char *line, size_t len, bool no_needle,
			     struct event_view *view)
{
	enum query_answer answer = QUERY_YES;
	struct front f;
	int kind;

	if (!line_front(line, len, &f) || memcmp(line + len - 2, "}}", 2) != 0)
		return QUERY_BROKEN;
	if (q->after != 0 && f.lsn <= q->after)
		return QUERY_NO;
	if (q->since[0] != '\0' && memcmp(f.time, q->since, CLOCK_ISO_LEN) < 0)
		return QUERY_NO;
	if (q->until[0] != '\0' && memcmp(f.time, q->until, CLOCK_ISO_LEN) >= 0)
		return QUERY_NO;
	if (q->text.needle != NULL && no_needle)
		return QUERY_NO;
	if (q->types != 0) {
		kind = event_kind_from(f.type, f.type_len);
		if (kind < 0 || (q->types & (UINT64_C(1) << kind)) == 0)
			return QUERY_NO;
	}
	if (q->agent.len > 0 || q->session.len > 0 || q->user.len > 0)
		answer = ask_ids(q, &f, line + len);
	if (answer == QUERY_YES)
		answer = ask_text(q, line, len, no_needle);
	if (answer == QUERY_YES && event_view(line, len, view) != 0)
		answer = QUERY_BROKEN;
	return answer;
}
