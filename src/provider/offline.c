/* The offline dialect: the embedded model that needs no key, no network and no
 * weights. It speaks the Messages form, so whatever is built for a real
 * service is exercised by it; its answer is a function of the request body
 * (and of the script, for offline:FILE.jsonl) alone: the same body, the same
 * bytes. It reads the whole body, plans one turn and forgets. Text that asks it to
 * finish is taken from user text blocks only, which the runtime alone writes; what
 * stands in tool results is never obeyed. A body that is none, a bad script and
 * missing memory are errors of the call. */
#include "provider/offline.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/prompt.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "provider/dialect.h"
#include "provider/wire.h"

#define SCRIPT_MAX (16u << 20)
#define RENEWED    "goes on from here with a new budget" /* written by subagent/resume.c */

/* ---- the body */

/* The largest number in our call ids ("toolu_3_1"): new ids stay unique even when a summary has
 * replaced earlier messages. */
static int body_add_call(struct offline_body *b, const json_t *block, unsigned message)
{
	const char *id = json_str(block, "id");
	unsigned n = 0;

	if (b->ncalls % 32 == 0) {
		void *more = realloc(b->calls, (b->ncalls + 32) * sizeof(*b->calls));

		if (!more)
			return AVA_ENOMEM;
		b->calls = more;
	}
	b->calls[b->ncalls++] = (struct offline_call){.id = id,
						      .name = json_str(block, "name"),
						      .input = json_object_get(block, "input"),
						      .message = message};
	if (sscanf(id, "toolu_%7u", &n) == 1)
		b->number = MAX(b->number, n + 1);
	return 0;
}

/* The text of a result; for "unchanged since …", which the runtime sends in place of a long
 * repeated result (agent/position.c), the earlier result of the same call. */
static const char *body_result(const struct offline_body *b, unsigned at, const char *text)
{
	static const char unchanged[] = "unchanged since ";

	if (strncmp(text, unchanged, sizeof(unchanged) - 1) != 0)
		return text;
	for (unsigned i = at; i-- > 0;) {
		const struct offline_call *c = &b->calls[i];

		if (c->result && strcmp(c->name, b->calls[at].name) == 0 &&
		    json_equal(c->input, b->calls[at].input))
			return c->result;
	}
	return text;
}

static void body_add_result(struct offline_body *b, const json_t *block)
{
	const json_t *content = json_object_get(block, "content");
	const char *id = json_str(block, "tool_use_id");

	for (unsigned i = b->ncalls; i-- > 0;) {
		struct offline_call *c = &b->calls[i];

		if (strcmp(c->id, id) != 0)
			continue;
		c->result = json_is_array(content) ? json_str(json_array_get(content, 0), "text")
						   : json_str(block, "content");
		c->result = body_result(b, i, c->result);
		c->is_error = json_get_bool(block, "is_error", false);
		return;
	}
}

/* A notice of the runtime. A run that continues with a new budget forgets the earlier request to
 * finish. */
static void body_add_notice(struct offline_body *b, const char *text)
{
	static const char *const words[] = {"submit", "limit", "% of", "budget", "wrap up"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		b->wrap_up |= strcasestr(text, words[i]) != NULL;
	if (strstr(text, RENEWED))
		b->wrap_up = false;
}

/* The task within the first message (agent/prompt.h); all of the text where it has another form.
 * NULL: no memory. */
static const char *offline_task_of(struct offline_body *b, const char *text)
{
	const char *task = text, *at = text;
	size_t len;

	while ((at = strstr(at, PROMPT_TASK)) != NULL) {
		if (at == text || at[-1] == '\n')
			task = at + strlen(PROMPT_TASK);
		at++;
	}
	len = strlen(task);
	return task == text ? text
			    : arena_copy(&b->mem, task, len - (len > 0 && task[len - 1] == '\n'));
}

static int body_add_message(struct offline_body *b, const json_t *m, unsigned message,
			    unsigned *users)
{
	const json_t *content = json_object_get(m, "content"), *block;
	bool user = strcmp(json_str(m, "role"), "user") == 0, results = false;
	size_t i;

	if ((!user && strcmp(json_str(m, "role"), "assistant") != 0) ||
	    json_array_size(content) == 0)
		return AVA_EINVAL;
	*users += user;
	json_array_foreach(content, i, block)
	{
		const char *type = json_str(block, "type"), *text = json_get_str(block, "text");

		if (strcmp(type, "tool_use") == 0 && !user) {
			if (body_add_call(b, block, message) != 0)
				return AVA_ENOMEM;
		} else if (strcmp(type, "tool_result") == 0 && user) {
			results = true;
			body_add_result(b, block);
		} else if (strcmp(type, "text") == 0) {
			if (!text)
				return AVA_EINVAL;
			if (user && !results) {
				b->newest = text;
				b->fresh = b->ncalls;
			}
			if (user && *users > 1)
				body_add_notice(b, text);
			else if (user && !b->task[0])
				b->task = offline_task_of(b, text);
			if (!b->task)
				return AVA_ENOMEM;
		}
	}
	return 0;
}

int offline_body_read(struct offline_body *b, const char *body, size_t len, struct ava_error *err)
{
	struct ava_error why = {0};
	const json_t *messages, *message, *tool;
	unsigned users = 0;
	size_t i;
	int rv = 0;

	*b = (struct offline_body){.task = "", .newest = "", .number = 1};
	arena_init(&b->mem, 4 * len + (8u << 20));
	b->root = json_parse(body, len, &why);
	if (!b->root && why.code == AVA_ENOMEM)
		return err_set(err, AVA_ENOMEM, "out of memory");
	messages = json_object_get(b->root, "messages");
	if (!json_is_array(messages))
		rv = AVA_EINVAL;
	json_array_foreach(json_object_get(b->root, "tools"), i, tool)
	{
		if (!json_get_str(tool, "name"))
			rv = AVA_EINVAL;
	}
	for (i = 0; rv == 0 && (message = json_array_get(messages, i)); i++)
		rv = body_add_message(b, message, (unsigned)i + 1, &users);
	if (rv != 0)
		return err_set(err, rv, "%s",
			       rv == AVA_ENOMEM ? "out of memory"
						: "the request is not of the Messages form");
	/* Each user message led to one call, also where the reply was empty and is not stored. */
	b->number = MAX(b->number, users);
	b->max_tokens = json_get_int(b->root, "max_tokens", 0);
	b->forced = strcmp(json_str(json_object_get(b->root, "tool_choice"), "name"),
			   "submit_result") == 0;
	return 0;
}

void offline_body_fini(struct offline_body *b)
{
	json_decref(b->root);
	arena_fini(&b->mem);
	free(b->calls);
}

const json_t *offline_tool(const struct offline_body *b, const char *name)
{
	const json_t *tools = json_object_get(b->root, "tools"), *tool, *takes;
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		if (strcmp(json_str(tool, "name"), name) != 0)
			continue;
		takes = json_object_get(json_object_get(tool, "input_schema"), "properties");
		return takes ? takes : tool;
	}
	return NULL;
}

/* ---- the reply */

void draft_start(struct offline_draft *d, unsigned number)
{
	struct turn *t = turn_new();

	*d = (struct offline_draft){.turn = t, .number = number};
	if (t) {
		t->text = t->thinking = t->request_id = t->wire = "";
		t->calls = arena_get(&t->mem, TURN_MAX_CALLS * sizeof(*t->calls));
	}
	if (!t || !t->calls)
		d->rv = AVA_ENOMEM;
}

static const char *draft_copy(struct offline_draft *d, const char *s, size_t len)
{
	const char *p = d->rv == 0 ? arena_copy(&d->turn->mem, s, len) : "";

	if (!p)
		d->rv = AVA_ENOMEM;
	return p ? p : "";
}

void draft_text(struct offline_draft *d, const char *text)
{
	text = draft_copy(d, text, strlen(text));
	if (d->rv != 0)
		return;
	d->turn->text = text;
	d->turn->text_len = strlen(text);
}

struct jw *draft_call(struct offline_draft *d, const char *name)
{
	d->name = name;
	buf_init(&d->args, TURN_MAX_BYTES);
	jw_init(&d->w, &d->args);
	jw_object(&d->w, NULL);
	return &d->w;
}

void draft_call_end(struct offline_draft *d)
{
	jw_end(&d->w);
	if (d->rv == 0)
		d->rv = buf_check(&d->args);
	draft_add(d, NULL, d->name, d->args.data, d->args.len, NULL);
	buf_fini(&d->args);
}

void draft_add(struct offline_draft *d, const char *id, const char *name, const char *args,
	       size_t len, const char *args_error)
{
	struct turn_call *c;
	char tag[16];

	if (d->rv == 0 && d->turn->ncalls == TURN_MAX_CALLS)
		d->rv = AVA_ETOOBIG;
	if (d->rv != 0)
		return;
	c = &d->turn->calls[d->turn->ncalls++];
	c->error_class = "";
	c->name = draft_copy(d, name, strlen(name));
	snprintf(tag, sizeof(tag), "%u", d->number);
	if (!id)
		c->wire_id = arena_fmt(&d->turn->mem, "toolu_%u_%u", d->number, d->turn->ncalls);
	else if (wire_call_id(d->turn, c, id, WIRE_ID_MAX, wire_id_char, tag) != 0)
		c->wire_id = NULL;
	if (!c->wire_id)
		d->rv = AVA_ENOMEM;
	if (args)
		c->args = draft_copy(d, args, len);
	else
		c->args_error = args_error;
	c->args_len = args ? len : 0;
}

void draft_wire(struct offline_draft *d, const char *wire, size_t len)
{
	wire = draft_copy(d, wire, len);
	if (d->rv != 0)
		return;
	d->turn->wire = wire;
	d->turn->wire_len = len;
}

int draft_finish(struct offline_draft *d, size_t body_len, struct turn **out)
{
	struct turn *t = d->turn;
	struct buf line;

	if (d->rv == 0 && t->wire_len == 0) {
		buf_init(&line, TURN_MAX_BYTES);
		d->rv = wire_assistant(&line, t);
		if (d->rv == 0 && line.len > 0)
			draft_wire(d, line.data, line.len);
		buf_fini(&line);
	}
	*out = d->rv == 0 ? t : NULL;
	d->turn = NULL;
	if (d->rv != 0) {
		turn_free(t);
		return d->rv;
	}
	t->usage = (struct usage){.input = (int64_t)(body_len + 3) / 4,
				  .output = (int64_t)(t->wire_len + 3) / 4,
				  .estimated = true};
	t->stop = t->ncalls > 0 ? TURN_STOP_TOOLS : TURN_STOP_END;
	return 0;
}

/* ---- the dialect */

static int offline_script(const struct offline_body *b, size_t body_len, const char *file,
			  struct dialect_answer *out, struct ava_error *err)
{
	char *text = NULL;
	size_t len;
	int rv = sys_read_file(AT_FDCWD, file, SCRIPT_MAX, &text, &len, err);

	if (rv != 0)
		return err_wrap(err, rv, "the script of the offline model");
	rv = script_play(file, text, len, b, body_len, out, err);
	free(text);
	return rv;
}

static int offline_answer(const char *body, size_t len, const char *config,
			  struct dialect_answer *out, struct ava_error *err)
{
	struct offline_body b;
	struct offline_draft d;
	int rv = offline_body_read(&b, body, len, err), drafted;

	*out = (struct dialect_answer){0};
	if (rv == 0 && config[0]) {
		rv = offline_script(&b, len, config, out, err);
	} else if (rv == 0) {
		draft_start(&d, b.number);
		rv = offline_tool(&b, "spawn_subagent") ? offline_talk(&b, &d)
							: offline_find(&b, &d);
		drafted = draft_finish(&d, len, &out->turn);
		rv = rv != 0 ? rv : drafted;
		if (rv != 0) {
			turn_free(out->turn);
			out->turn = NULL;
			err_set(err, rv, "the offline model ran out of memory");
		}
	}
	offline_body_fini(&b);
	return rv;
}

const struct dialect dialect_offline = {
	.name = "offline",
	.can_force = true,
	.encode_head = wire_head,
	.encode_tail = wire_tail,
	.line_kind = wire_line_kind,
	.encode_user = wire_user,
	.encode_results = wire_results,
	.check = wire_check,
	.results = wire_each_result,
	.open_calls = wire_open_calls,
	.answer = offline_answer,
};
