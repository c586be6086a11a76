/* Always in the same way, so that each request extends the last one. For all services what the
 * runtime and people say to results stands behind the text of the last one, and two messages
 * of the user have one of the model between them: not all take them otherwise (goose#5998,
 * llama.cpp#19851). The rest is done for those words of profile.h that the model does not take. */
#include "provider/chat_request.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "provider/model.h"
#include "provider/profile.h"

#define REASONING "reasoning_content"

struct rewrite {
	const struct model *m;
	struct buf out;
	bool as_stored; /* copy lines unchanged: the model takes every form they hold */
	char before;    /* first letter of the last message's role; 0: none */
};

static void chat_request_put(struct rewrite *r, struct slice s)
{
	buf_add(&r->out, s.s, s.len);
}

/* Write "KEY": with the comma that separates it from the member before. */
static void put_key(struct rewrite *r, struct slice key)
{
	if (r->out.len > 0 && r->out.data[r->out.len - 1] != '{')
		buf_addc(&r->out, ',');
	buf_addc(&r->out, '"');
	chat_request_put(r, key);
	buf_adds(&r->out, "\":");
}

/* The nine-letter name of an id; the same id always has the same name. */
static void put_id(struct rewrite *r, struct slice id)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	uint64_t print = 14695981039346656037u;
	size_t good = 0;

	for (size_t i = 1; i + 1 < id.len; i++) {
		print = (print ^ (unsigned char)id.s[i]) * 1099511628211u;
		good += isalnum((unsigned char)id.s[i]) != 0;
	}
	if (model_takes(r->m, "long_ids") || (good == 9 && id.len == 11)) {
		chat_request_put(r, id);
		return;
	}
	buf_addc(&r->out, '"');
	for (int i = 0; i < 9; i++, print /= 62)
		buf_addc(&r->out, digits[print % 62]);
	buf_addc(&r->out, '"');
}

bool chat_call_member(struct slice key)
{
	static const char *const members[] = {"index", "id",        "type",      "function",
					      "name",  "arguments", "parameters"};

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (slice_is(key, members[i]))
			return true;
	return false;
}

#define UNSIGNED "{\"google\":{\"thought_signature\":\"skip_thought_signature_validator\"}}"

/* `unsign`: another model made the call, which Gemini takes with the signature that its
 * documentation gives for this case. */
static void put_call(struct rewrite *r, struct slice call, bool unsign)
{
	struct slice key, value;
	struct jscan w;

	jscan_init(&w, call.s, call.len);
	jscan_object(&w);
	buf_addc(&r->out, '{');
	while (jscan_key(&w, &key) && jscan_skip(&w, &value)) {
		if (!chat_call_member(key) && !model_takes(r->m, "call_members"))
			continue;
		unsign = unsign && !slice_is(key, "extra_content");
		put_key(r, key);
		if (slice_is(key, "function"))
			put_call(r, value, false);
		else if (slice_is(key, "id"))
			put_id(r, value);
		else
			chat_request_put(r, value);
	}
	if (unsign)
		buf_adds(&r->out, ",\"extra_content\":" UNSIGNED);
	buf_addc(&r->out, '}');
}

static void put_calls(struct rewrite *r, struct slice calls)
{
	bool unsign = !model_takes(r->m, "calls_without_signature");
	struct slice call;
	struct jscan w;

	jscan_list(&w, calls.s + 1, calls.len - 2);
	for (char sep = '['; jscan_next(&w, &call); sep = ',', unsign = false) {
		buf_addc(&r->out, sep);
		put_call(r, call, unsign); /* only the first call of a message is signed */
	}
	buf_addc(&r->out, ']');
}

static void chat_request_put_content(struct rewrite *r, struct slice text)
{
	bool empty = text.len == 2;

	if (empty || (slice_is(text, "null") && !model_takes(r->m, "null_content")))
		buf_adds(&r->out, model_takes(r->m, "empty_content") ? "\"\"" : "\"-\"");
	else
		chat_request_put(r, text);
}

/* Append the text to the result written before; false: that result has no text. */
static bool join_result(struct rewrite *r, struct slice text)
{
	size_t len = r->out.len;

	if (text.len < 2 || text.s[0] != '"' || len < 2 ||
	    memcmp(r->out.data + len - 2, "\"}", 2) != 0)
		return false;
	r->out.len -= 2;
	buf_adds(&r->out, "\\n\\n");
	chat_request_put(r, (struct slice){text.s + 1, text.len - 1});
	buf_addc(&r->out, '}');
	return true;
}

/* Members that the model rejects may stand in lines stored before the rejection was known. */
static bool chat_request_left_out(const struct model *m, struct slice key)
{
	char word[32];

	if (slice_is(key, "extra_content"))
		return !model_takes(m, "call_members");
	if (key.len < 9 || key.len >= sizeof(word) || memcmp(key.s, "reasoning", 9) != 0)
		return false;
	snprintf(word, sizeof(word), "%.*s", (int)key.len, key.s);
	return !model_takes(m, word);
}

static void chat_request_put_line(struct rewrite *r, struct slice line)
{
	char role = line.s[strlen("{\"role\":\"")]; /* the role comes first in each line */
	bool fold = role == 's' && !model_takes(r->m, "system_role");
	struct slice key, value, said = {"\" \"", 3};
	bool thought =
		!model_takes(r->m, REASONING) || model_takes(r->m, "calls_without_reasoning");
	struct jscan w;

	if (role == 'u' && r->before == 't' &&
	    join_result(r, jscan_member(line.s, line.len, "content")))
		return;
	if (r->before != 0)
		buf_addc(&r->out, ',');
	if (role == 'u' && (r->before == 'u' || r->before == 't'))
		buf_adds(&r->out, CHAT_BRIDGE ",");
	r->before = fold ? 't' : role; /* the user's words follow a folded line */
	if (r->as_stored) {
		chat_request_put(r, line);
		return;
	}
	jscan_init(&w, line.s, line.len);
	jscan_object(&w);
	buf_addc(&r->out, '{');
	while (jscan_key(&w, &key) && jscan_skip(&w, &value)) {
		if (slice_is(key, "reasoning") && value.s[0] == '"')
			said = value;
		thought = thought || slice_is(key, REASONING);
		if (chat_request_left_out(r->m, key))
			continue;
		if (slice_is(key, "tool_calls") && !thought) {
			put_key(r, (struct slice){REASONING, strlen(REASONING)});
			chat_request_put(r, said);
		}
		put_key(r, key);
		if (fold && slice_is(key, "role"))
			buf_adds(&r->out, "\"user\"");
		else if (slice_is(key, "content"))
			chat_request_put_content(r, value);
		else if (slice_is(key, "tool_call_id"))
			put_id(r, value);
		else if (slice_is(key, "tool_calls") && value.s[0] == '[')
			put_calls(r, value);
		else
			chat_request_put(r, value);
	}
	buf_addc(&r->out, '}');
}

/* Copy a schema without the keywords that the service does not know. A parameter named like a
 * keyword is an object and stays. */
static void put_schema(struct rewrite *r, struct slice in)
{
	struct slice key = {"", 0}, value;
	bool object = in.s[0] == '{';
	struct jscan w;
	char word[64];

	if (!object && in.s[0] != '[') {
		chat_request_put(r, in);
		return;
	}
	jscan_init(&w, in.s, in.len);
	buf_addc(&r->out, in.s[0]);
	for (object ? jscan_object(&w) : jscan_array(&w);
	     (object ? jscan_key(&w, &key) : jscan_item(&w)) && jscan_skip(&w, &value);) {
		snprintf(word, sizeof(word), PROFILE_KEYWORD "%.*s", (int)key.len, key.s);
		if (!model_takes(r->m, word) && (value.s[0] != '{' || key.s[0] == 'a'))
			continue;
		if (object)
			put_key(r, key);
		else if (r->out.data[r->out.len - 1] != '[')
			buf_addc(&r->out, ',');
		put_schema(r, value);
	}
	buf_addc(&r->out, object ? '}' : ']');
}

/* Does any user message follow a result or another user message? Quotes in strings are
 * escaped, so the keys searched for are members; arguments of a call may hold them too, which costs
 * a rewrite only. */
static bool user_follows(const char *s, size_t len)
{
	static const char user[] = ",{\"role\":\"user\",", role[] = "{\"role\":\"";
	const size_t n = sizeof(role) - 1;
	const char *at = s, *before;

	while ((at = memmem(at, (size_t)(s + len - at), user, sizeof(user) - 1)) != NULL) {
		for (before = at; before > s && memcmp(before, role, n) != 0; before--)
			;
		if (before[n] != 'a')
			return true;
		at += sizeof(user) - 1;
	}
	return false;
}

int chat_request(struct buf *body, size_t *lines_from, const struct model *m)
{
	struct rewrite r = {.m = m, .as_stored = m == NULL || m->drop[0] == 0};
	struct slice key, value;
	struct jscan w;
	int rv;

	if (r.as_stored && !user_follows(body->data + *lines_from, body->len - *lines_from))
		return 0;
	buf_init(&r.out, body->max);
	(void)buf_reserve(&r.out, body->len); /* the rewritten body is about as long */
	buf_addc(&r.out, '{');
	jscan_init(&w, body->data, body->len);
	jscan_object(&w);
	while (jscan_key(&w, &key)) {
		put_key(&r, key);
		if (slice_is(key, "messages") || !jscan_skip(&w, &value))
			break;
		if (slice_is(key, "tools") && m != NULL)
			put_schema(&r, value);
		else
			chat_request_put(&r, value);
	}
	jscan_array(&w);
	buf_addc(&r.out, '[');
	*lines_from = r.out.len;
	jscan_list(&w, w.at, (size_t)(w.end - w.at));
	while (jscan_next(&w, &value))
		chat_request_put_line(&r, value);
	rv = buf_check(&r.out);
	buf_fini(rv == 0 && !w.failed ? body : &r.out);
	if (rv == 0 && !w.failed)
		*body = r.out;
	return rv;
}
