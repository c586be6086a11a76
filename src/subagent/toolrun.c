/* Tools at work. A world_call owns arguments and output until the tool calls done, which happens
 * exactly once, also after a stop; the run is kept until then.
 *
 * Happy path: toolrun_start begins a call, or holds it until the copy of the project is made and
 * the call before it is done; call_done takes the answer, records it and wakes the machine.
 * Output is repaired, redacted and capped; the whole of an output that was cut is kept as an
 * artifact of the run. What can fail: memory, and arguments that are no JSON; an output that
 * is too big becomes a failed result. */
#include "subagent/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/envelope.h"
#include "agent/limit.h"
#include "agent/tool.h"
#include "base/clock.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/proof.h"
#include "subagent/record.h"
#include "tool/job.h"

struct world_call {
	struct tool_call tool;
	struct list node; /* in run.tools.at_work; alone when dropped */
	struct list turn; /* in run.tools.held until the call is begun */
	struct run *run;
	unsigned index;   /* index of the call in the turn */
	bool dropped;     /* toolrun_stop dropped the call: ignore the answer */
	int64_t began_ms; /* monotonic */
	json_t *args;
	char id[16];
};

static void call_free(struct world_call *c)
{
	struct run *r = c->run;

	list_del(&c->node);
	list_del(&c->turn);
	json_decref(c->args);
	buf_fini(&c->tool.out);
	buf_fini(&c->tool.file);
	free(c);
	r->busy--;
	r->tools.running--;
	run_tool_done(r);
	run_release(r);
}

/* ---- the answer */

static int clean_output(struct world_call *c, struct buf *out)
{
	struct buf repaired, open;
	int rv;

	buf_init(&repaired, TOOL_FULL_MAX * 3);
	buf_init(&open, TOOL_FULL_MAX * 3);
	utf8_repair(&repaired, c->tool.out.data ? c->tool.out.data : "", c->tool.out.len);
	rv = redact_text(c->run->rec.outbox.lb->redact, &open, repaired.data ? repaired.data : "",
			 repaired.len);
	if (rv >= 0 && (c->tool.tool->flags & TOOL_WEB))
		rv = buf_add(out, open.data ? open.data : "", open.len);
	else if (rv >= 0)
		rv = envelope_other(out, open.data ? open.data : "", open.len);
	buf_fini(&repaired);
	buf_fini(&open);
	return rv;
}

/* Keeps the whole of an output that the turn has cut, or a file that is no text, as a file of the
 * run. */
static void keep_artifact(struct run *r, struct turn *t, struct turn_call *tc,
			  const struct buf *full, const char *type)
{
	struct draft *d = commit_draft(r);
	char path[RUN_ARTIFACT_PATH];
	struct buf *b;

	run_artifact_path(r, tc->id, type, path);
	b = d ? draft_part(d, DRAFT_PUT, path) : NULL;
	if (!b || buf_add(b, full->data, full->len) != 0)
		return;
	tc->artifact = arena_copy(&t->mem, path, strlen(path));
	buf_addf(&r->tools.artifacts, "%s\"%s\"", r->tools.artifacts.len ? "," : "", path);
}

static void world_answer(struct world_call *c, struct turn *t, struct turn_call *tc)
{
	struct run *r = c->run;
	struct buf full;
	size_t shown;

	buf_init(&full, TOOL_FULL_MAX * 6);
	tc->answered = true;
	tc->ended_ms = clock_mono_ms();
	tc->success = c->tool.success;
	tc->error_class = c->tool.error_class ? c->tool.error_class : "";
	if (clean_output(c, &full) != 0) {
		tc->success = false;
		tc->error_class = "too_big";
		buf_reset(&full);
		buf_adds(&full, "the output was too big to keep; ask for less");
	}
	tc->full_bytes = (int64_t)full.len;
	shown = full.len;
	if (tc->success && c->tool.file_type && c->tool.file.len > 0)
		keep_artifact(r, t, tc, &c->tool.file, c->tool.file_type);
	if (full.len > c->tool.out_bytes) {
		shown = c->tool.out_bytes;
		while (shown > 0 && ((unsigned char)full.data[shown] & 0xc0) == 0x80)
			shown--;
		keep_artifact(r, t, tc, &full, "txt");
		tc->output = arena_fmt(
			&t->mem,
			"%.*s\n(cut: the first %zu of %zu bytes; read_result with call_id "
			"%s shows the rest)",
			(int)shown, full.data, shown, full.len, tc->id);
	} else {
		tc->output = arena_copy(&t->mem, full.data ? full.data : "", full.len);
	}
	if (!tc->output) {
		tc->success = false;
		tc->error_class = "too_big";
		tc->output = "there was no memory for this output; ask for less";
	}
	tc->output_len = strlen(tc->output);
	buf_fini(&full);
}

/* The event shows the beginning of a long output only: keep the whole beside the messages until
 * the turn's results line is written, so that a restart need not call the tool again. */
static void keep_whole(struct run *r, const struct turn_call *tc)
{
	struct buf *b = tc->output_len > EVENT_PREVIEW_CHARS ? commit_messages(r) : NULL;
	struct jw w;

	if (!b)
		return;
	spec_line_begin(&w, b, "mark");
	jw_str(&w, "kept", tc->id);
	jw_strn(&w, "output", tc->output, tc->output_len);
	spec_line_end(&w);
}

static void world_count(struct run *r, const struct turn_call *tc)
{
	if (!tc->success)
		return;
	r->tools.bytes_read += tc->full_bytes;
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		if (r->spec->tools[i] == tc->tool)
			r->tools.counts[i]++;
}

/* ---- the check */

#define CHECK_SECONDS_MAX 3600
#define CHECK_TEXT_MAX    8192 /* bytes that the model, the log and the result have of it */

/* Keeps the first line, how it ended, and as much as there is room for of the last ones. */
static void check_cut(struct buf *text, size_t room)
{
	size_t first = text->len > 0 ? strcspn(text->data, "\n") + 1 : 0, skip;
	const char *nl;

	if (text->len <= room || first >= room)
		return;
	skip = text->len - (room - first);
	nl = memchr(text->data + skip, '\n', text->len - skip - 1);
	skip = nl ? (size_t)(nl + 1 - text->data) : skip;
	while (skip < text->len && ((unsigned char)text->data[skip] & 0xc0) == 0x80)
		skip++;
	memmove(text->data + first, text->data + skip, text->len - skip);
	text->len -= skip - first;
	text->data[text->len] = '\0';
}

static void check_answer(struct world_call *c)
{
	struct run *r = c->run;
	const struct tool_call *t = &c->tool;
	const char *class = t->error_class ? t->error_class : "";
	struct draft *d = commit_draft(r);
	struct proof p = {.how = CHECK_UNABLE, .exit = t->exit, .round = r->agent.at.checks + 1};
	struct buf text;

	buf_init(&text, TOOL_FULL_MAX * 6);
	if (clean_output(c, &text) != 0 || buf_addc(&text, '\0') != 0) {
		buf_reset(&text);
		buf_adds(&text, "its output was too big to keep");
		buf_addc(&text, '\0');
	}
	text.len--; /* the last byte ends the text */
	check_cut(&text, MIN(t->out_bytes, (size_t)CHECK_TEXT_MAX));
	if (t->success || strcmp(class, "timeout") == 0 || strcmp(class, "limit") == 0)
		p.how = t->success && t->exit == 0 ? CHECK_PASSED : CHECK_FAILED;
	p.ms = clock_mono_ms() - c->began_ms;
	p.text = text.data ? text.data : "";
	if (d)
		record_check(d, r, &p);
	run_proof(r, &p); /* without memory the result has no check */
	agent_on_checked(&r->agent, p.how, p.text);
	buf_fini(&text);
	run_wake(r);
}

static void world_go_on(struct run *r);

static void call_done(struct tool_call *tool)
{
	struct world_call *c = tool->user;
	struct run *r = c->run;
	struct turn *t = r->agent.turn;

	if (!c->dropped && tool->tool == &tool_check) {
		check_answer(c);
	} else if (!c->dropped) {
		struct turn_call *tc = &t->calls[c->index];
		struct draft *d;

		world_answer(c, t, tc);
		world_count(r, tc);
		d = commit_draft(r);
		if (d) {
			record_tool_result(d, r, tc);
			tc->recorded = true;
		}
		/* The last result goes in the commit of the results line that follows. */
		if (d && r->agent.answered + 1 < t->ncalls) {
			keep_whole(r, tc);
			commit_flush(r, JOURNAL_RIDE, NULL);
		}
		agent_on_tool(&r->agent, c->index);
		run_wake(r);
	}
	if (r->tools.turn == c) {
		r->tools.turn = NULL;
		world_go_on(r);
	}
	call_free(c);
}

/* ---- start and stop */

static void world_show_line(struct run *r, const char *text, size_t len)
{
	struct draft *d = commit_draft(r);
	struct buf whole, clean;

	buf_init(&whole, 16384);
	buf_init(&clean, 16384);
	if (utf8_repair(&whole, text, len) == 0 && whole.len &&
	    redact_text(r->rec.outbox.lb->redact, &clean, whole.data, whole.len) >= 0) {
		clean.data[utf8_prefix(clean.data, clean.len, 120)] = 0; /* after redacting */
		run_activity(r, clean.data);
		if (d && !r->place) /* a conversation's ToolCall says as much */
			record_activity(d, r, r->activity);
		commit_flush(r, JOURNAL_RIDE,
			     NULL); /* watchers see the line while the tool works */
	}
	buf_fini(&whole);
	buf_fini(&clean);
}

void toolrun_activity(struct tool_env *env, const char *line)
{
	struct run *r = env->user;

	if (!r->agent.ending)
		world_show_line(r, line, strlen(line));
}

/* StateRead goes in the commit of the call's result. */
void toolrun_state_read(struct tool_env *env, const char *key)
{
	struct run *r = env->user;
	struct draft *d = r->agent.ending ? NULL : commit_draft(r);

	if (d)
		record_state_read(d, r, key);
}

static void world_call_begin(struct world_call *c)
{
	struct run *r = c->run;
	const struct tool *tool = c->tool.tool;
	struct buf text;

	if (tool->flags & TOOL_FILES) /* if it is gone, the tool says so */
		(void)run_open_folder(r, NULL);
	/* Each check has a folder of its own, with nothing in it that a tool of the run wrote, or
	 * the project's code in a check before. */
	if (tool == &tool_check)
		snprintf(r->tools.env.workspace, sizeof(r->tools.env.workspace), RUN_CHECK,
			 r->id.text, (int)r->agent.at.iteration);
	else
		snprintf(r->tools.env.workspace, sizeof(r->tools.env.workspace), RUN_WORK,
			 r->id.text);
	r->tools.env.order = r->rec.log.row;
	c->began_ms = clock_mono_ms();
	buf_init(&text, 65536);
	if (tool->activity)
		tool->activity(c->args, &text);
	else
		buf_addf(&text, "Using %s", tool->name);
	if (!tool->activity && json_object_size(c->args) > 0) {
		buf_addc(&text, ' ');
		(void)json_dump(&text, c->args); /* on failure the beginning is shown */
	}
	world_show_line(r, text.data ? text.data : "", text.len);
	buf_fini(&text);
	tool->start(&c->tool);
}

/* ---- calls that see the copy of the project wait for it, and run in order */

static void copied(struct run *r, const struct ava_error *err)
{
	while (err->code != 0 && err->code != AVA_ECANCELED && !list_empty(&r->tools.held)) {
		struct world_call *c = LIST_FIRST(&r->tools.held, struct world_call, turn);

		list_del(&c->turn);
		c->tool.error_class = job_error_class(err->code);
		buf_adds(&c->tool.out, err->text);
		call_done(&c->tool);
	}
	world_go_on(r);
}

/* Begins held calls in order. A tool may be done at once and call this again: `going` lets the
 * outer loop begin the next one. */
static void world_go_on(struct run *r)
{
	if (r->tools.going)
		return;
	r->tools.going = true;
	while (!r->tools.turn && !list_empty(&r->tools.held)) {
		struct world_call *c = LIST_FIRST(&r->tools.held, struct world_call, turn);

		if (!r->tools.env.copy) {
			run_activity(r, "Copying the project");
			copying_make(r, copied);
			break;
		}
		list_del(&c->turn);
		r->tools.turn = c;
		world_call_begin(c);
	}
	r->tools.going = false;
}

/* Records the layers of the sandbox when they differ from those recorded last. */
void toolrun_layers(struct tool_env *env, const char *json)
{
	struct run *r = env->user;
	struct draft *d;
	char hash[HASH_HEX_LEN + 1];

	hash_sha256_hex(json, strlen(json), hash);
	if (r->agent.ending || memcmp(r->tools.layers, hash, sizeof(r->tools.layers)) == 0)
		return;
	memcpy(r->tools.layers, hash, sizeof(r->tools.layers));
	d = commit_draft(r);
	if (d)
		record_sandbox(d, r, json);
}

/* `args` is *taken*; NULL: no memory, then NULL. */
static struct world_call *world_call_new(struct agent *a, const struct tool *tool, json_t *args)
{
	struct run *r = a->world;
	struct world_call *c = args ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		json_decref(args);
		return NULL;
	}
	c->args = args;
	c->run = r;
	c->tool = (struct tool_call){
		.tool = tool,
		.id = c->id,
		.args = c->args,
		.env = &r->tools.env,
		.out_bytes = limit_result_bytes(a, MAX(a->turn->ncalls, 1u), TOOL_OUTPUT_MAX),
		.done = call_done,
		.user = c,
		.exit = -1,
		.error_class = ""};
	buf_init(&c->tool.out, TOOL_FULL_MAX);
	buf_init(&c->tool.file, TOOL_FULL_MAX);
	list_add(&r->tools.at_work, &c->node);
	r->busy++;
	r->tools.running++;
	list_init(&c->turn);
	return c;
}

/* Begins the call, or holds it until it may see the copy. */
static void world_call_go(struct world_call *c)
{
	struct run *r = c->run;

	if (copying_wanted(r) && (c->tool.tool->flags & (TOOL_FILES | TOOL_PROJECT))) {
		list_add(&r->tools.held, &c->turn);
		world_go_on(r);
	} else {
		world_call_begin(c);
	}
}

int toolrun_start(struct agent *a, unsigned index)
{
	struct turn_call *tc = &a->turn->calls[index];
	json_t *args = json_parse(tc->args, tc->args_len, NULL);
	struct world_call *c;

	if (!args)
		return AVA_EINVAL;
	c = world_call_new(a, tc->tool, args);
	if (!c)
		return AVA_ENOMEM;
	memcpy(c->id, tc->id, sizeof(c->id));
	c->index = index;
	tc->started_ms = clock_mono_ms();
	world_call_go(c);
	return 0;
}

/* The begin of the check is durable. No call waits where the run was stopped meanwhile. */
static void check_saved(int rv, void *user)
{
	struct run *r = user;
	struct world_call *c = r->tools.check;

	r->tools.check = NULL;
	if (c)
		world_call_go(c);
}

int toolrun_check(struct agent *a)
{
	struct run *r = a->world;
	struct draft *d = commit_draft(r);
	int64_t left = a->deadline_ms - clock_mono_ms(); /* the run's own end comes first */
	int64_t seconds = MIN(MAX(left / 1000 + 1, 1), (int64_t)CHECK_SECONDS_MAX);
	struct world_call *c;

	c = !d ? NULL
	       : world_call_new(a, &tool_check,
				json_pack("{s:s, s:s, s:I}", "command", a->spec->check, "cwd", ".",
					  "timeout", (json_int_t)seconds));
	if (!c)
		return AVA_ENOMEM;
	snprintf(c->id, sizeof(c->id), "check");
	record_check(d, r, NULL);
	r->tools.check = c;
	commit_flush(r, JOURNAL_NOW, check_saved);
	return 0;
}

/* The run ends while its check is at work: the result says how long it had, and why no longer. */
static void check_cut_off(struct run *r, const struct world_call *c)
{
	struct proof p = {.how = CHECK_RUNS,
			  .exit = -1,
			  .ms = clock_mono_ms() - c->began_ms,
			  .round = r->agent.at.checks + 1,
			  .text = r->agent.cancelled ? WORDS_CHECK_CANCELLED : WORDS_CHECK_TIME};

	run_proof(r, &p);
}

void toolrun_names(const struct run *r, struct jw *w)
{
	LIST_EACH (&r->tools.at_work, n, tmp)
		jw_str(w, NULL, LIST_ENTRY(n, struct world_call, node)->tool.tool->name);
}

void toolrun_stop(struct agent *a)
{
	struct run *r = a->world;

	copying_stop(r);
	LIST_EACH (&r->tools.at_work, n, tmp) {
		struct world_call *c = LIST_ENTRY(n, struct world_call, node);

		if (c->tool.tool == &tool_check && c->began_ms > 0)
			check_cut_off(r, c);
		c->dropped = true;
		atomic_store(&c->tool.stop, true);
		list_del(n); /* the turn may go; the call stays until its tool is done */
		if (!list_empty(&c->turn) || r->tools.check == c)
			call_free(c); /* a held call never began */
		else if (c->tool.tool->stop)
			c->tool.tool->stop(&c->tool); /* may free `c` at once */
	}
	r->tools.check = NULL;
}
