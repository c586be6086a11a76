/* Scripted turns: the model offline:FILE.jsonl plays the lines of a file (doc/OFFLINE.md).
 * The request says which one: its number is the number of the call (the user messages
 * of the body), so that the same body always gets the same answer and a restart goes
 * on where the conversation stands. All lines are checked before one is played: a
 * typing error in line 9 shows at once, not after eight turns. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "provider/dialect.h"
#include "provider/offline.h"

#define DELAY_MAX_MS (24 * 3600 * 1000LL)

static const struct {
	const char *key;
	json_type type;
	const char *must;
} script_keys[] = {
	{"text", JSON_STRING, "text and thinking must be strings"},
	{"thinking", JSON_STRING, "text and thinking must be strings"},
	{"tool_calls", JSON_ARRAY, "tool_calls must be an array"},
	{"delay_ms", JSON_INTEGER, "delay_ms must be a whole number from 0 to 86400000"},
	{"usage", JSON_OBJECT, "usage must be an object"},
	{"wire", JSON_OBJECT, "wire must be the object of an assistant message"},
	{"error", JSON_OBJECT, "error must be an object"},
	{"stop_reason", JSON_STRING,
	 "stop_reason must be end_turn, tool_use, max_tokens, refusal, pause_turn, stop_sequence "
	 "or other"},
};

struct script_word {
	const char *word;
	int value;
};

static const struct script_word script_stops[] = {
	{"end_turn", TURN_STOP_END},    {"stop_sequence", TURN_STOP_END},
	{"tool_use", TURN_STOP_TOOLS},  {"max_tokens", TURN_STOP_LENGTH},
	{"refusal", TURN_STOP_REFUSAL}, {"pause_turn", TURN_STOP_PAUSE},
	{"other", TURN_STOP_OTHER},     {NULL, 0},
};

static const struct script_word script_classes[] = {
	{"overloaded", AVA_EBUSY},
	{"rate_limit", AVA_EBUSY},
	{"connect", AVA_ECONNECT},
	{"timeout", AVA_ETIMEOUT},
	{"protocol", AVA_EPROTO},
	{"invalid_request", AVA_EINVAL},
	{"authentication", AVA_EDENIED},
	{"too_large", AVA_ETOOBIG},
	{"io", AVA_EIO},
	{NULL, 0},
};

static const struct script_word *script_find(const struct script_word *w, const char *word)
{
	while (w->word && strcmp(w->word, word) != 0)
		w++;
	return w->word ? w : NULL;
}

/* The fault of a turn, written into `room`; NULL: none. */
static const char *script_fault(json_t *turn, char room[80])
{
	const json_t *calls = json_object_get(turn, "tool_calls"), *c;
	const json_t *error = json_object_get(turn, "error");
	int64_t delay = json_get_int(turn, "delay_ms", 0);
	const char *key, *stop = json_get_str(turn, "stop_reason");
	json_t *v;
	size_t i;

	if (!json_is_object(turn))
		return "a turn must be an object";
	json_object_foreach(turn, key, v)
	{
		for (i = 0; i < ARRAY_LEN(script_keys); i++)
			if (strcmp(key, script_keys[i].key) == 0)
				break;
		if (i == ARRAY_LEN(script_keys)) {
			snprintf(room, 80, "unknown key \"%.40s\"", key);
			return room;
		}
		if (json_typeof(v) != script_keys[i].type ||
		    (strcmp(key, "delay_ms") == 0 && (delay < 0 || delay > DELAY_MAX_MS)) ||
		    (v == json_object_get(turn, "stop_reason") && !script_find(script_stops, stop)))
			return script_keys[i].must;
	}
	if (error && !script_find(script_classes, json_str(error, "class")))
		return "error needs a class: overloaded, rate_limit, connect, timeout, protocol, "
		       "invalid_request, authentication, too_large or io";
	if (error && !json_get_str(error, "message"))
		return "error needs a message";
	if (json_array_size(calls) > TURN_MAX_CALLS)
		return "more calls than a turn may hold";
	json_array_foreach(calls, i, c)
	{
		const json_t *name = json_object_get(c, "name"), *id = json_object_get(c, "id");

		if (!json_is_string(name))
			return "each of tool_calls needs a name";
		if (json_string_length(name) > 128)
			return "the name of a call is over 128 bytes";
		if (id && !json_is_string(id))
			return "the id of a call must be a string";
	}
	return NULL;
}

/* An id that an earlier reply has is replaced, as a service gives a new one each time. */
static void script_call(struct offline_draft *d, const json_t *c, const struct offline_body *b)
{
	const json_t *args = json_object_get(c, "args");
	const char *name = json_get_str(c, "name"), *id = json_get_str(c, "id");
	struct buf text;

	for (unsigned i = 0; id && i < b->ncalls; i++)
		if (strcmp(b->calls[i].id, id) == 0)
			id = NULL;
	buf_init(&text, TURN_MAX_BYTES);
	if (!args)
		draft_add(d, id, name, "{}", 2, NULL);
	else if (!json_is_object(args))
		draft_add(d, id, name, NULL, 0,
			  "the arguments are no JSON object: send one object with the arguments");
	else if (json_dump(&text, args) == 0)
		draft_add(d, id, name, text.data, text.len, NULL);
	else if (d->rv == 0)
		d->rv = buf_check(&text);
	buf_fini(&text);
}

/* Take the value of "wire" byte for byte from the line. */
static void script_wire(struct offline_draft *d, const char *line, size_t len)
{
	struct slice key, value;
	struct jscan w;

	jscan_init(&w, line, len);
	jscan_object(&w);
	while (jscan_key(&w, &key))
		if (jscan_skip(&w, &value) && slice_is(key, "wire"))
			draft_wire(d, value.s, value.len);
}

static int script_turn(const char *line, size_t len, const json_t *turn,
		       const struct offline_body *b, size_t body_len, struct turn **out)
{
	const json_t *usage = json_object_get(turn, "usage"), *c;
	const char *thinking = json_str(turn, "thinking"),
		   *stop = json_get_str(turn, "stop_reason");
	struct offline_draft d;
	size_t i;
	int rv;

	draft_start(&d, b->number);
	draft_text(&d, json_str(turn, "text"));
	json_array_foreach(json_object_get(turn, "tool_calls"), i, c) script_call(&d, c, b);
	script_wire(&d, line, len);
	if (d.rv == 0) {
		d.turn->thinking = arena_copy(&d.turn->mem, thinking, strlen(thinking));
		d.turn->thinking_len = strlen(thinking);
		d.rv = d.turn->thinking ? 0 : AVA_ENOMEM;
	}
	rv = draft_finish(&d, body_len, out);
	if (rv == 0 && usage)
		(*out)->usage = (struct usage){
			.input = json_get_int(usage, "input", 0),
			.output = json_get_int(usage, "output", 0),
			.cache_read = json_get_int(usage, "cache_read", 0),
			.cache_write = json_get_int(usage, "cache_write", 0),
			.reasoning = json_get_int(usage, "reasoning", 0),
			.cost_microusd = json_get_fixed(usage, "cost_cents", 4, -1),
		};
	if (rv == 0 && stop)
		(*out)->stop = (enum turn_stop)script_find(script_stops, stop)->value;
	return rv;
}

int script_play(const char *file, const char *text, size_t len, const struct offline_body *b,
		size_t body_len, struct dialect_answer *out, struct ava_error *err)
{
	const char *played = NULL, *next, *end = text + len, *fault;
	unsigned number = 0, turns = 0;
	struct ava_error why = {0};
	json_t *turn = NULL, *played_turn = NULL;
	size_t n, played_len = 0;
	char room[80];
	int rv = 0;

	for (const char *s = text; rv == 0 && s < end; s = next) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));

		n = (size_t)((nl ? nl : end) - s);
		next = s + n + (nl != NULL);
		number++;
		while (n > 0 && (s[n - 1] == '\r' || s[n - 1] == ' '))
			n--;
		if (n == 0 || *s == '#')
			continue;
		turn = json_parse(s, n, &why);
		fault = turn ? script_fault(turn, room) : NULL;
		if (!turn)
			rv = err_set(err, why.code, "%s line %u: not JSON: %.300s", file, number,
				     why.text);
		else if (fault)
			rv = err_set(err, AVA_EINVAL, "%s line %u: %s", file, number, fault);
		if (++turns == b->number) {
			played = s;
			played_len = n;
			played_turn = json_incref(turn);
		}
		json_decref(turn);
	}
	turn = json_object_get(played_turn, "error");
	if (rv == 0 && !played)
		rv = err_set(err, AVA_EINVAL,
			     "%s has %u turn%s and this is call %u: the script has ended", file,
			     turns, turns == 1 ? "" : "s", b->number);
	else if (rv == 0 && turn)
		rv = err_set(err, script_find(script_classes, json_str(turn, "class"))->value,
			     "%s: %s", json_str(turn, "class"), json_str(turn, "message"));
	else if (rv == 0 && script_turn(played, played_len, played_turn, b, body_len, &out->turn))
		rv = err_set(err, AVA_ENOMEM, "%s: the turn does not fit into memory", file);
	out->delay_ms = json_get_int(played_turn, "delay_ms", 0);
	json_decref(played_turn);
	return rv;
}
