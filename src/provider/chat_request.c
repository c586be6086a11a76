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
	char before; /* first letter of the last message's role; 0: none */
};

static void put(struct rewrite *r, struct slice s)
{
	buf_add(&r->out, s.s, s.len);
}

/* "KEY": behind what separates it from the member before. */
static void put_key(struct rewrite *r, struct slice key)
{
	if (r->out.len > 0 && r->out.data[r->out.len - 1] != '{')
		buf_addc(&r->out, ',');
	buf_addc(&r->out, '"');
	put(r, key);
	buf_adds(&r->out, "\":");
}

/* A name of nine letters for an id, always the same. */
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
		put(r, id);
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

/* `unsign`: a call of another model's, which Gemini takes with these words of its document. */
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
			put(r, value);
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
		put_call(r, call, unsign); /* the first one alone is signed */
	}
	buf_addc(&r->out, ']');
}

static void put_content(struct rewrite *r, struct slice text)
{
	bool empty = text.len == 2;

	if (empty || (slice_is(text, "null") && !model_takes(r->m, "null_content")))
		buf_adds(&r->out, model_takes(r->m, "empty_content") ? "\"\"" : "\"-\"");
	else
		put(r, text);
}

/* Behind the text of the result before; false: that has none. */
static bool join_result(struct rewrite *r, struct slice text)
{
	size_t len = r->out.len;

	if (text.len < 2 || text.s[0] != '"' || len < 2 ||
	    memcmp(r->out.data + len - 2, "\"}", 2) != 0)
		return false;
	r->out.len -= 2;
	buf_adds(&r->out, "\\n\\n");
	put(r, (struct slice){text.s + 1, text.len - 1});
	buf_addc(&r->out, '}');
	return true;
}

/* Reasoning that it does not take back came when that was not known yet, as the rest. */
static bool left_out(const struct model *m, struct slice key)
{
	char word[32];

	if (slice_is(key, "extra_content"))
		return !model_takes(m, "call_members");
	if (key.len < 9 || key.len >= sizeof(word) || memcmp(key.s, "reasoning", 9) != 0)
		return false;
	snprintf(word, sizeof(word), "%.*s", (int)key.len, key.s);
	return !model_takes(m, word);
}

static void put_line(struct rewrite *r, struct slice line)
{
	char role = line.s[strlen("{\"role\":\"")]; /* comes first in each */
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
	r->before = role;
	jscan_init(&w, line.s, line.len);
	jscan_object(&w);
	buf_addc(&r->out, '{');
	while (jscan_key(&w, &key) && jscan_skip(&w, &value)) {
		if (slice_is(key, "reasoning") && value.s[0] == '"')
			said = value;
		thought = thought || slice_is(key, REASONING);
		if (left_out(r->m, key))
			continue;
		if (slice_is(key, "tool_calls") && !thought) {
			put_key(r, (struct slice){REASONING, strlen(REASONING)});
			put(r, said);
		}
		put_key(r, key);
		if (slice_is(key, "content"))
			put_content(r, value);
		else if (slice_is(key, "tool_call_id"))
			put_id(r, value);
		else if (slice_is(key, "tool_calls") && value.s[0] == '[')
			put_calls(r, value);
		else
			put(r, value);
	}
	buf_addc(&r->out, '}');
}

static int put_lines(struct buf *body, size_t lines_from, const struct model *m)
{
	struct rewrite r = {.m = m};
	struct slice line;
	struct jscan w;
	int rv;

	buf_init(&r.out, body->max);
	(void)buf_reserve(&r.out, body->len); /* about as long */
	buf_add(&r.out, body->data, lines_from);
	jscan_list(&w, body->data + lines_from, body->len - lines_from);
	while (jscan_next(&w, &line))
		put_line(&r, line);
	rv = buf_check(&r.out);
	buf_fini(rv == 0 && !w.failed ? body : &r.out);
	if (rv == 0 && !w.failed)
		*body = r.out;
	return rv;
}

/* ---- the head, in place. Quotes inside strings are escaped, so what is looked for is
 * never part of a text. */

/* Overwrites what stands at `at` by `with`, which is no longer; both counts shrink. */
static void splice(struct buf *body, size_t *head, char *at, size_t len, const char *with)
{
	size_t n = strlen(with);

	memcpy(at, with, n);
	memmove(at + n, at + len, (size_t)(body->data + body->len - (at + len)) + 1);
	body->len -= len - n;
	*head -= len - n;
}

/* A keyword of a schema that the service does not know; a parameter of that name is an object. */
static void drop_keyword(struct buf *body, size_t *head, const char *word)
{
	char key[64], *at = body->data;
	size_t n = (size_t)snprintf(key, sizeof(key), "\"%s\":", word);
	struct slice value;
	struct jscan w;

	while ((at = memmem(at, (size_t)(body->data + *head - at), key, n)) != NULL) {
		jscan_init(&w, at + n, (size_t)(body->data + *head - at) - n);
		if (!jscan_skip(&w, &value) || (value.s[0] == '{' && word[0] != 'a')) {
			at += n;
			continue;
		}
		at -= at[-1] == ',';
		splice(body, head, at, (size_t)(w.at - at) + (*at != ',' && *w.at == ','), "");
	}
}

/* The system message becomes the beginning of the first user's. */
static void fold_system(struct buf *body, size_t *head)
{
	static const char begin[] = "[{\"role\":\"system\",\"content\":\"",
			  next[] = "\"},{\"role\":\"user\",\"content\":\"";
	char *at, *end = body->data + *head - 3;

	if (*head < sizeof(begin) + 3 || body->len < *head + sizeof(next) ||
	    memcmp(end, next, sizeof(next) - 1) != 0)
		return;
	for (at = end - sizeof(begin); at > body->data; at--)
		if (memcmp(at, begin, sizeof(begin) - 1) == 0)
			break;
	if (at == body->data)
		return;
	splice(body, head, end, sizeof(next) - 1, "\\n\\n");
	splice(body, head, at, sizeof(begin) - 1, "[{\"role\":\"user\",\"content\":\"");
	*head = (size_t)(at + 1 - body->data);
}

int chat_request(struct buf *body, size_t *lines_from, const struct model *m)
{
	static const char user[] = ",{\"role\":\"user\",";
	const char *drop = m != NULL ? m->drop : "";
	char word[64];
	bool as_stored;

	/* Another message of the user is behind a result, or so it may be. */
	as_stored = memmem(body->data + *lines_from, body->len - *lines_from, user,
			   sizeof(user) - 1) == NULL;
	for (; *drop != 0; drop += strspn(drop, " ")) {
		size_t len = strcspn(drop, " ");

		snprintf(word, sizeof(word), "%.*s", (int)len, drop);
		drop += len;
		if (strncmp(word, PROFILE_KEYWORD, strlen(PROFILE_KEYWORD)) == 0)
			drop_keyword(body, lines_from, word + strlen(PROFILE_KEYWORD));
		else if (profile_in_chat(word))
			as_stored = false;
	}
	if (!model_takes(m, "system_role"))
		fold_system(body, lines_from);
	return as_stored ? 0 : put_lines(body, *lines_from, m);
}
