/* A script is a file of JSON lines; the request says which one is played: its
 * number is the number of the call (the user messages of the body), so that
 * the same body always gets the same answer and a restart goes on where the
 * conversation stands. All lines are checked before one is played: a typing
 * error in line 9 shows at once, not after eight turns. Blank lines and lines
 * that begin with # are no turns. */
#include "provider/offline_script.h"

#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/offline_body.h"
#include "provider/offline_draft.h"

#define DELAY_MAX_MS (24 * 3600 * 1000LL)

struct line {
	const char *s;
	size_t len;
	unsigned number; /* in the file, from 1 */
	const char *file;
	struct ava_error *err;
};

static int bad(const struct line *l, const char *what)
{
	return err_set(l->err, AVA_EINVAL, "%s line %u: %s", l->file, l->number, what);
}

/* Next turn of the script; false at the end. A last line without \n counts. */
static bool next_line(const char *text, size_t len, size_t *at, struct line *l)
{
	while (*at < len) {
		const char *s = text + *at, *nl = memchr(s, '\n', len - *at);
		size_t n = nl != NULL ? (size_t)(nl - s) : len - *at;

		*at += n + (nl != NULL);
		l->number++;
		while (n > 0 && (s[n - 1] == '\r' || s[n - 1] == ' '))
			n--;
		if (n == 0 || s[0] == '#')
			continue;
		l->s = s;
		l->len = n;
		return true;
	}
	return false;
}

/* ---- checking */

static const struct {
	const char *word;
	enum turn_stop stop;
} stops[] = {
	{"end_turn", TURN_STOP_END},    {"stop_sequence", TURN_STOP_END},
	{"tool_use", TURN_STOP_TOOLS},  {"max_tokens", TURN_STOP_LENGTH},
	{"refusal", TURN_STOP_REFUSAL}, {"pause_turn", TURN_STOP_PAUSE},
	{"other", TURN_STOP_OTHER},
};

static const struct {
	const char *class;
	int code;
} classes[] = {
	{"overloaded", AVA_EBUSY},
	{"rate_limit", AVA_EBUSY},
	{"connect", AVA_ECONNECT},
	{"timeout", AVA_ETIMEOUT},
	{"protocol", AVA_EPROTO},
	{"invalid_request", AVA_EINVAL},
	{"authentication", AVA_EDENIED},
	{"too_large", AVA_ETOOBIG},
	{"io", AVA_EIO},
};

static bool fits_type(const json_t *v, json_type type)
{
	return v == NULL || json_typeof(v) == type;
}

static int check_calls(const struct line *l, const json_t *calls)
{
	const json_t *c;
	size_t i;

	if (json_array_size(calls) > TURN_MAX_CALLS)
		return bad(l, "more calls than a turn may hold");
	json_array_foreach(calls, i, c)
	{
		if (json_get_str(c, "name") == NULL)
			return bad(l, "each of tool_calls needs a name");
		if (json_string_length(json_object_get(c, "name")) > 128)
			return bad(l, "the name of a call is over 128 bytes");
		if (!fits_type(json_object_get(c, "id"), JSON_STRING))
			return bad(l, "the id of a call must be a string");
	}
	return 0;
}

static int check_error(const struct line *l, const json_t *error)
{
	const char *class = json_get_str(error, "class");

	for (size_t i = 0; class != NULL && i < ARRAY_LEN(classes); i++)
		if (strcmp(class, classes[i].class) == 0)
			return json_get_str(error, "message") != NULL
				       ? 0
				       : bad(l, "error needs a message");
	return bad(l, "error needs a class: overloaded, rate_limit, connect, timeout, protocol, "
		      "invalid_request, authentication, too_large or io");
}

static int check_keys(const struct line *l, json_t *turn)
{
	static const char *const known[] = {"text",        "tool_calls", "delay_ms", "usage",
					    "stop_reason", "error",      "wire",     "thinking"};
	const char *key;
	json_t *v;

	json_object_foreach(turn, key, v)
	{
		size_t i = 0;

		while (i < ARRAY_LEN(known) && strcmp(key, known[i]) != 0)
			i++;
		if (i == ARRAY_LEN(known))
			return err_set(l->err, AVA_EINVAL, "%s line %u: unknown key \"%.40s\"",
				       l->file, l->number, key);
	}
	return 0;
}

static int check_turn(const struct line *l, json_t *turn)
{
	const json_t *error = json_object_get(turn, "error"), *wire = json_object_get(turn, "wire");
	const char *stop = json_get_str(turn, "stop_reason");
	int64_t delay = json_get_int(turn, "delay_ms", 0);
	size_t i = 0;
	int rv = check_keys(l, turn);

	if (rv != 0)
		return rv;
	if (!fits_type(json_object_get(turn, "text"), JSON_STRING) ||
	    !fits_type(json_object_get(turn, "thinking"), JSON_STRING))
		return bad(l, "text and thinking must be strings");
	if (!fits_type(json_object_get(turn, "tool_calls"), JSON_ARRAY))
		return bad(l, "tool_calls must be an array");
	if (!fits_type(json_object_get(turn, "delay_ms"), JSON_INTEGER) || delay < 0 ||
	    delay > DELAY_MAX_MS)
		return bad(l, "delay_ms must be a whole number from 0 to 86400000");
	if (!fits_type(json_object_get(turn, "usage"), JSON_OBJECT))
		return bad(l, "usage must be an object");
	if (!fits_type(wire, JSON_OBJECT))
		return bad(l, "wire must be the object of an assistant message");
	while (i < ARRAY_LEN(stops) && stop != NULL && strcmp(stop, stops[i].word) != 0)
		i++;
	if (i == ARRAY_LEN(stops) || !fits_type(json_object_get(turn, "stop_reason"), JSON_STRING))
		return bad(
			l,
			"stop_reason must be end_turn, tool_use, max_tokens, refusal, pause_turn, "
			"stop_sequence or other");
	if (error != NULL)
		return check_error(l, error);
	return check_calls(l, json_object_get(turn, "tool_calls"));
}

/* A new reference, or NULL with a sentence. */
static json_t *parse_line(const struct line *l, int *rv)
{
	struct ava_error why = {0};
	json_t *turn = json_parse(l->s, l->len, &why);

	*rv = 0;
	if (turn == NULL)
		*rv = err_set(l->err, why.code == AVA_ENOMEM ? AVA_ENOMEM : AVA_EINVAL,
			      "%s line %u: not JSON: %.300s", l->file, l->number, why.text);
	else if (!json_is_object(turn))
		*rv = bad(l, "a turn must be an object");
	else
		*rv = check_turn(l, turn);
	if (*rv != 0) {
		json_decref(turn);
		return NULL;
	}
	return turn;
}

int script_check(const char *file, const char *text, size_t len, struct ava_error *err)
{
	struct line l = {.file = file, .err = err};
	size_t at = 0;
	int rv;

	while (next_line(text, len, &at, &l)) {
		json_t *turn = parse_line(&l, &rv);

		if (turn == NULL)
			return rv;
		json_decref(turn);
	}
	return 0;
}

/* ---- playing */

/* An earlier reply had it: as of a service, it gets one that is new. */
static bool id_taken(const struct offline_body *b, const char *id)
{
	for (unsigned i = 0; id != NULL && i < b->ncalls; i++)
		if (slice_is(b->calls[i].id, id))
			return true;
	return false;
}

static void play_call(struct draft *a, const json_t *c, const struct offline_body *b)
{
	const json_t *args = json_object_get(c, "args");
	const char *name = json_get_str(c, "name"), *id = json_get_str(c, "id");
	struct buf text;

	if (id_taken(b, id))
		id = NULL;
	buf_init(&text, TURN_MAX_BYTES);
	if (args == NULL) {
		draft_call(a, id, name, "{}", 2, NULL);
	} else if (!json_is_object(args)) {
		draft_call(a, id, name, NULL, 0,
			   "the arguments are no JSON object: send one object with the arguments");
	} else if (json_dump(&text, args) == 0) {
		draft_call(a, id, name, text.data, text.len, NULL);
	} else {
		a->rv = a->rv != 0 ? a->rv : buf_check(&text);
	}
	buf_fini(&text);
}

/* The value of "wire" as it stands in the line, byte for byte. */
static struct slice raw_member(const struct line *l, const char *name)
{
	struct slice key, value = {NULL, 0};
	struct jscan w;

	jscan_init(&w, l->s, l->len);
	jscan_object(&w);
	while (jscan_key(&w, &key)) {
		if (slice_is(key, name))
			jscan_skip(&w, &value);
		else
			jscan_skip(&w, NULL);
	}
	return value;
}

static void play_usage(struct turn *t, const json_t *usage)
{
	if (usage == NULL)
		return;
	t->usage = (struct usage){
		.input = json_get_int(usage, "input", 0),
		.output = json_get_int(usage, "output", 0),
		.cache_read = json_get_int(usage, "cache_read", 0),
		.cache_write = json_get_int(usage, "cache_write", 0),
		.reasoning = json_get_int(usage, "reasoning", 0),
		.cost_microusd = json_get_fixed(usage, "cost_cents", 4, -1),
	};
}

static int play_error(const json_t *error, struct ava_error *err)
{
	const char *class = json_get_str(error, "class");
	size_t i = 0;

	while (i < ARRAY_LEN(classes) - 1 && strcmp(class, classes[i].class) != 0)
		i++;
	return err_set(err, classes[i].code, "%s: %s", class, json_get_str(error, "message"));
}

static int play_turn(const struct line *l, const json_t *turn, const struct offline_body *b,
		     size_t body_len, struct dialect_answer *out)
{
	const char *text = json_get_str(turn, "text"), *thinking = json_get_str(turn, "thinking");
	const char *stop = json_get_str(turn, "stop_reason");
	const json_t *calls = json_object_get(turn, "tool_calls"), *c;
	struct slice wire = raw_member(l, "wire");
	struct draft a;
	size_t i;
	int rv;

	draft_start(&a, b->number);
	if (text != NULL)
		draft_text(&a, text, strlen(text));
	json_array_foreach(calls, i, c) play_call(&a, c, b);
	if (wire.s != NULL)
		draft_wire(&a, wire.s, wire.len);
	rv = draft_finish(&a, body_len, &out->turn);
	if (rv != 0)
		return err_set(l->err, rv, "%s line %u: the turn does not fit into memory", l->file,
			       l->number);
	play_usage(out->turn, json_object_get(turn, "usage"));
	if (thinking != NULL) {
		out->turn->thinking = arena_copy(&out->turn->mem, thinking, strlen(thinking));
		out->turn->thinking_len = strlen(thinking);
		if (out->turn->thinking == NULL) {
			turn_free(out->turn);
			out->turn = NULL;
			return err_set(l->err, AVA_ENOMEM, "out of memory");
		}
	}
	for (i = 0; stop != NULL && i < ARRAY_LEN(stops); i++)
		if (strcmp(stop, stops[i].word) == 0)
			out->turn->stop = stops[i].stop;
	return 0;
}

int script_play(const char *file, const char *text, size_t len, const struct offline_body *b,
		size_t body_len, struct dialect_answer *out, struct ava_error *err)
{
	struct line l = {.file = file, .err = err};
	const json_t *error;
	json_t *turn;
	size_t at = 0;
	unsigned turns = 0;
	int rv = script_check(file, text, len, err);

	if (rv != 0)
		return rv;
	while (next_line(text, len, &at, &l)) {
		if (++turns != b->number)
			continue;
		turn = parse_line(&l, &rv);
		if (turn == NULL)
			return rv;
		out->delay_ms = json_get_int(turn, "delay_ms", 0);
		error = json_object_get(turn, "error");
		rv = error != NULL ? play_error(error, err) : play_turn(&l, turn, b, body_len, out);
		json_decref(turn);
		return rv;
	}
	return err_set(err, AVA_EINVAL,
		       "%s has %u turn%s and this is call %u: the script has ended", file, turns,
		       turns == 1 ? "" : "s", b->number);
}
