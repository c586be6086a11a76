/* Turns. What is said, and what subagents bring, queues as inputs; when Ava is
 * idle they become one user-role line, and the machine goes on.
 *
 *   say ─► on disk (UserMessage, session entry) ─► input ─┐
 *   a subagent ends ──────────────────────────► input ────┤
 *                                     idle? ─► answers to proposals ─► turn
 *
 * An input is told once: a mark beside its line names it, and the next start
 * tells what has no mark. Nothing here fails for good: a turn that cannot be
 * begun for want of memory is tried again a second later. */
#include "ava/talk.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "provider/models.h"
#include "subagent/run.h"

#define AGAIN_MS 1000

void talk_frame(struct talk *t, int kind, const char *text, size_t len)
{
	struct core *c = t->session->core;
	struct op_frame f = {.session = t->session->id, .text = text, .len = len};

	f.kind = kind;
	LIST_EACH (&c->watches, n, tmp) {
		struct op_watch *w = LIST_ENTRY(n, struct op_watch, node);

		w->frame(&f, w->user);
	}
}

void talk_text(struct run *r, const char *s, size_t n, bool thinking)
{
	struct talk *t = talk_of(r);

	if (t)
		talk_frame(t, thinking ? FRAME_THINKING : FRAME_TEXT, s, n);
}

/* ---- inputs */

void talk_input_free(struct input *in)
{
	list_del(&in->node);
	while (!list_empty(&in->waits)) {
		struct say_wait *w = LIST_FIRST(&in->waits, struct say_wait, node);

		list_del(&w->node);
		free(w);
	}
	free(in->request);
	free(in->text);
	free(in);
}

void talk_input(struct talk *t, struct input *in)
{
	in->talk = t;
	list_add(&t->inputs, &in->node);
	os_defer(t->run.sup->loop, &t->pump);
}

static void watch_free(struct talk_watch *w)
{
	run_wait_cancel(&w->wait);
	list_del(&w->node);
	free(w);
}

static void run_ended(struct run_wait *wait, struct run *r)
{
	struct talk_watch *w = CONTAINER_OF(wait, struct talk_watch, wait);
	struct talk *t = w->talk;
	struct input *in = r->end.done ? calloc(1, sizeof(*in)) : NULL;

	/* Without memory, or when the runtime stops: the next start tells it. */
	if (in) {
		in->kind = INPUT_RESULT;
		list_init(&in->node);
		list_init(&in->waits);
		memcpy(in->id, w->run, sizeof(in->id));
		talk_input(t, in);
	}
	watch_free(w);
}

int talk_watch_run(struct talk *t, struct run *r)
{
	struct talk_watch *w;

	LIST_EACH (&t->watches, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct talk_watch, node)->run, r->id.text) == 0)
			return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return AVA_ENOMEM;
	w->talk = t;
	w->wait.ended = run_ended;
	list_init(&w->wait.node);
	memcpy(w->run, r->id.text, sizeof(w->run));
	list_add(&t->watches, &w->node);
	run_wait(r, &w->wait);
	return 0;
}

/* ---- a turn */

static void set_limits(struct talk *t)
{
	const struct settings *s = &t->session->core->settings;

	t->run.spec->agent.limits = (struct agent_limits){
		.time_ms = s->ava_timeout_s * 1000,
		.cost_microusd = s->ava_cost_cents * 10000,
		.tokens = s->ava_tokens,
		.iterations = (int32_t)s->ava_iterations,
	};
}

static void sum_up(struct talk *t)
{
	const struct agent_totals *a = &t->run.agent.at.totals;

	t->cost_microusd += a->cost_microusd;
	t->tokens += a->input + a->output;
}

static void mark_told(struct talk *t, struct draft *d)
{
	LIST_EACH (&t->inputs, n, tmp) {
		struct input *in = LIST_ENTRY(n, struct input, node);

		talk_mark(t, d, in->kind == INPUT_SAID ? "said" : "result", in->id);
	}
	LIST_EACH (&t->notes, n, tmp) {
		const struct talk_note *note = LIST_ENTRY(n, struct talk_note, node);

		if (note->id[0])
			talk_mark(t, d, "noted", note->id);
	}
	talk_mark_turn(t, d, true, 0);
}

/* What events preview as the prompt. */
static void keep_prompt(struct talk *t, const struct buf *text)
{
	buf_reset(&t->prompt);
	buf_add(&t->prompt, text->data, MIN(text->len, (size_t)8192));
	t->run.spec->task = t->prompt.data ? t->prompt.data : "";
}

/* The line and its marks into the draft; on error it is as if never tried. */
static int put_line(struct talk *t, const struct buf *line, int64_t *added)
{
	struct run *r = &t->run;
	struct hash_sha256 prefix = r->rec.prefix;
	int64_t request_bytes = r->rec.request_bytes;
	bool wordless = r->rec.wordless;
	struct draft *d = world_draft(r);
	struct buf *part;

	*added = d ? world_lines(r, line->data, line->len) : AVA_ENOMEM;
	if (*added >= 0) {
		mark_told(t, d);
		part = draft_part(d, DRAFT_MESSAGES, t->messages);
		if (part && buf_check(part) == 0)
			return 0;
	}
	draft_free(r->rec.draft); /* between two turns nothing else is in it */
	r->rec.draft = NULL;
	r->rec.prefix = prefix;
	r->rec.request_bytes = request_bytes;
	r->rec.wordless = wordless;
	return AVA_ENOMEM;
}

/* The inputs as one line, and the marks that say they were told. */
static int write_turn(struct talk *t, int64_t *added)
{
	struct buf text, line;
	int rv;

	buf_init(&text, 4u << 20);
	buf_init(&line, 16u << 20);
	rv = talk_compose(&text, t);
	if (rv == 0)
		rv = t->run.spec->model->dialect->encode_user(&line, text.data, text.len);
	if (rv == 0)
		rv = put_line(t, &line, added);
	if (rv == 0) {
		talk_note_told(t);
		keep_prompt(t, &text);
	}
	buf_fini(&text);
	buf_fini(&line);
	return rv;
}

static void begin_turn(struct talk *t)
{
	struct run *r = &t->run;
	int64_t added = 0;

	if (write_turn(t, &added) != 0) {
		os_timer_set(t->again, AGAIN_MS);
		return;
	}
	while (!list_empty(&t->inputs))
		talk_input_free(LIST_FIRST(&t->inputs, struct input, node));
	if (t->begun) {
		sum_up(t);
		agent_next(&r->agent, added);
	}
	talk_go(t);
}

void talk_go(struct talk *t)
{
	struct run *r = &t->run;

	if (!t->begun) {
		int32_t iteration = r->agent.at.iteration;

		agent_init(&r->agent, &t->io, &r->spec->agent, r, r->rec.request_bytes);
		r->agent.at.iteration = r->agent.at.turn_from = iteration;
	}
	t->begun = true;
	set_limits(t);
	t->busy = true;
	talk_frame(t, FRAME_TURN, "busy", 4);
	world_wake(r);
}

void talk_pump(struct talk *t)
{
	if (t->busy || t->answering || t->run.end.abandoned || list_empty(&t->inputs))
		return;
	LIST_EACH (&t->inputs, n, tmp) {
		struct input *in = LIST_ENTRY(n, struct input, node);

		if (in->kind == INPUT_SAID && !in->looked && talk_answer(t, in))
			return;
	}
	begin_turn(t);
}

static void try_again(void *user)
{
	talk_pump(user);
}

static void pump(struct os_task *task)
{
	talk_pump(CONTAINER_OF(task, struct talk, pump));
}

/* ---- life */

static struct run_spec *make_spec(struct session *s, bool restored, struct ava_error *err)
{
	const struct tool *tools[ROLE_MAX_TOOLS];
	const char *ours = s->core->model ? s->core->model : models_ava();
	struct op_talk o = {
		.role = &role_ava,
		.tools = tools,
		.ntools = talk_tools(s->core, s->cwd[0] != 0, tools),
		.operating = talk_operating_text(false),
		.operating_brief = talk_operating_text(true),
		/* Its messages file names the one it was begun with: talk_restore. */
		.model = restored      ? "offline"
			 : s->model[0] ? s->model
				       : ours,
		.restored = restored,
		.cwd = s->cwd,
		.session_id = s->id,
		.user_id = s->user,
	};
	struct run_spec *spec = NULL;
	struct buf system;
	int rv;

	buf_init(&system, 1u << 20);
	rv = talk_system(&system, s);
	if (rv == 0) {
		o.system = system.data;
		rv = spec_build_talk(&spec, &o, err);
	} else {
		err_set(err, rv, "out of memory");
	}
	buf_fini(&system);
	return rv == 0 ? spec : NULL;
}

int talk_messages_path(const struct session *s, char out[LOGBOOK_PATH])
{
	int stem = (int)(strlen(s->path) - strlen(".jsonl"));
	int n = snprintf(out, LOGBOOK_PATH, "%.*s.messages.jsonl", stem, s->path);

	return n < LOGBOOK_PATH ? 0 : AVA_ETOOBIG;
}

static int set_paths(struct talk *t, struct ava_error *err)
{
	const char *path = t->session->path;
	int stem = (int)(strlen(path) - strlen(".jsonl"));

	if (talk_messages_path(t->session, t->messages) != 0 ||
	    (size_t)snprintf(t->artifacts, sizeof(t->artifacts), "%.*s.artifacts", stem, path) >=
		    sizeof(t->artifacts))
		return err_set(err, AVA_ETOOBIG, "the name of the session is too long");
	t->place = (struct run_place){
		.agent_id = "ava", .messages = t->messages, .artifacts = t->artifacts};
	return 0;
}

int talk_open(struct session *s, struct ava_error *err)
{
	struct talk *t = calloc(1, sizeof(*t));
	struct run_spec *spec;
	int rv = AVA_ENOMEM;

	if (!t)
		return err_set(err, AVA_ENOMEM, "out of memory");
	t->session = s;
	t->spoke_ms = s->there ? clock_wall_ms() : 0; /* what was shown last is not known */
	list_init(&t->node);
	list_init(&t->saying);
	list_init(&t->inputs);
	list_init(&t->watches);
	list_init(&t->notes);
	buf_init(&t->prompt, 16u << 10);
	os_task_init(&t->pump, pump);
	t->again = os_timer_new(s->core->loop, try_again, t);
	if (!t->again) {
		err_set(err, rv, "out of memory");
		goto fail;
	}
	talk_world_init(t);
	t->run.place = &t->place;
	spec = make_spec(s, s->there, err);
	if (!spec || run_init(&t->run, &s->core->sup, spec) != 0) {
		spec_free(spec);
		rv = err && err->code ? err->code : err_set(err, AVA_ENOMEM, "out of memory");
		goto fail;
	}
	agent_init(&t->run.agent, &t->io, &spec->agent, &t->run, 0);
	t->run.durable = true;
	t->run.rec.wordless = true;
	rv = set_paths(t, err);
	if (rv == 0 && s->there)
		rv = talk_restore(t, err);
	if (rv != 0) {
		run_fini(&t->run);
		goto fail;
	}
	s->talk = t;
	list_add(&s->core->talks, &t->node);
	return 0;

fail:
	talk_note_told(t);
	os_timer_free(t->again);
	buf_fini(&t->prompt);
	free(t);
	return rv;
}

void talk_free(struct talk *t)
{
	list_splice(&t->inputs, &t->saying);
	list_del(&t->node);
	while (!list_empty(&t->inputs)) {
		struct input *in = LIST_FIRST(&t->inputs, struct input, node);

		if (in->answer && in->answer->outlives)
			in->answer->in = NULL;
		else
			free(in->answer);
		talk_input_free(in);
	}
	while (!list_empty(&t->watches))
		watch_free(LIST_FIRST(&t->watches, struct talk_watch, node));
	os_defer_cancel(t->run.sup->loop, &t->pump);
	os_timer_free(t->again);
	t->session->talk = NULL;
	t->run.spec->task = "";
	run_fini(&t->run);
	talk_note_told(t);
	buf_fini(&t->prompt);
	free(t);
}
