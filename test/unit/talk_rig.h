/* A person who talks with Ava: a real journal, the offline model and its
 * scripts, in a data root of their own. A script's k-th line answers the k-th
 * message of the user's side, results of tools included. */
#ifndef TALK_RIG_H
#define TALK_RIG_H

#include "world.h"

#include <string.h>
#include <unistd.h>

#include "ava/ask.h"
#include "ava/proposal.h"
#include "ava/ops.h"
#include "ava/sessions.h"
#include "ava/talk.h"
#include "base/hash.h"
#include "base/util.h"
#include "codec/json.h"
#include "subagent/person.h"
#include "runs_now.h"
#include "session_lines.h"

static inline int set_up(void **state)
{
	struct world *w = world_new("offline");

	write_file(w->src, "parser.c", "int parse_header(const char *s)\n{\n\treturn 0;\n}\n");
	open_core(w);
	*state = w;
	return 0;
}

/* ---- a person */

static __attribute__((noinline, unused)) char *new_name(struct world *w)
{
	return w->names[w->named++ % ARRAY_LEN(w->names)];
}

/* The id; after "!" what was wrong. Good until many more have been made. */
static inline const char *begin_with(struct world *w, const struct op_session_new *n)
{
	char *id = new_name(w);
	struct ava_error err = {0};
	struct op_session s;

	if (ops_session_new(w->core, n, &s, &err) != 0)
		snprintf(id, sizeof(w->names[0]), "!%.190s", err.text);
	else
		snprintf(id, sizeof(w->names[0]), "%s", s.id);
	return id;
}

static inline const char *begin(struct world *w, const char *model)
{
	struct op_session_new n = {.cwd = w->src, .user_id = "ben", .model = model};

	return begin_with(w, &n);
}

/* Lines of a script. */
#define SAY(text)        "{\"text\":\"" text "\"}\n"
#define HELD(text)       "{\"text\":\"" text "\",\"delay_ms\":3600000}\n" /* until let_reply */
#define ONE(name, args)  "{\"name\":\"" name "\",\"args\":" args "}"
#define CALLS(calls)     "{\"tool_calls\":[" calls "]}\n"
#define CALL(name, args) CALLS(ONE(name, args))
#define SPAWN(task)      ONE("spawn_subagent", "{\"role\":\"researcher\",\"task\":\"" task "\"}")
#define READ             CALL("read_file", "{\"path\":\"parser.c\"}")
#define ASK              "Find where parse_header is defined" /* which the offline Ava proposes */

#define SUBMIT CALL("submit_result", "{\"output\":null,\"summary\":\"done\",\"confidence\":1}")

/* The model id of a script with these lines. */
static inline const char *script(struct world *w, const char *lines)
{
	char *id = new_name(w), *path = id + strlen("offline:");

	snprintf(id, sizeof(w->names[0]), "offline:%s/script%d.jsonl", w->dir, w->scripts++);
	unit_write(path, lines, strlen(lines));
	return id;
}

static inline void said(int rv, const char *entry, const struct ava_error *err, void *user)
{
	*(int *)user = rv == 0 ? 1 : rv;
}

/* What it comes to be, which is not 0. */
static inline int until(struct world *w, const int *done)
{
	for (int i = 0; !*done && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_not_equal(*done, 0);
	return *done;
}

static inline void steps(struct world *w, int n)
{
	for (int i = 0; i < n; i++)
		os_loop_step(w->loop, 10);
}

static inline void keep_newest(const struct ask *a, void *user)
{
	struct ask *newest = user;

	if (!newest->id[0] || a->since_ms >= newest->since_ms)
		*newest = *a;
}

/* What a door has shown last: the newest that waits; "" nothing does. */
static inline const char *shown_last(struct world *w, const char *session)
{
	static struct ask newest;

	newest = (struct ask){.id = ""};
	ask_each(w->core, session, keep_newest, &newest);
	return newest.id;
}

/* `shown`: what stood before the words. */
static inline int say_shown(struct world *w, const char *session, const char *text,
			    const char *shown)
{
	struct op_say s = {.text = text, .user_id = "ben", .shown = shown};
	int done = 0;

	ops_say(w->core, session, &s, said, &done);
	return until(w, &done);
}

static inline int say(struct world *w, const char *session, const char *text)
{
	return say_shown(w, session, text, shown_last(w, session));
}

/* The reply that a script holds back (a delay of an hour) comes now. */
static inline void let_reply(struct world *w, const char *session)
{
	struct session *s = session_find(w->core, session, NULL);

	assert_true(s && s->talk);
	for (int i = 0; s->talk->run.call.state != CALL_DELAY && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(s->talk->run.call.state, CALL_DELAY);
	os_timer_set(s->talk->run.call.timer, 0);
}

static inline bool is_busy(const struct op_session *s)
{
	return s->busy || s->waiting > 0;
}

static inline bool has_runs(const struct op_session *s)
{
	return is_busy(s) || s->live_runs > 0;
}

static inline void wait_while(struct world *w, const char *session,
			      bool (*see)(const struct op_session *))
{
	struct op_session s;

	for (int i = 0; i < 6000; i++) {
		assert_int_equal(ops_session(w->core, session, &s, NULL), 0);
		if (!see(&s))
			return;
		os_loop_step(w->loop, 10);
	}
	fail();
}

static inline void idle(struct world *w, const char *session)
{
	wait_while(w, session, is_busy);
}

static inline void tell(struct world *w, const char *session, const char *text)
{
	assert_int_equal(say(w, session, text), 1);
	idle(w, session);
}

static inline void tell_shown(struct world *w, const char *session, const char *text,
			      const char *shown)
{
	assert_int_equal(say_shown(w, session, text, shown), 1);
	idle(w, session);
}

/* ---- what the session file says */

struct seen {
	const char *role, *text; /* looked for; either may be NULL */
	unsigned n;
	char last[8192];
};

static inline void see_text(struct seen *s, const char *role, const char *text)
{
	if ((s->role && strcmp(role, s->role) != 0) || !text || (s->text && !strstr(text, s->text)))
		return;
	s->n++;
	snprintf(s->last, sizeof(s->last), "%s", text);
}

static inline void see_entry(const char *line, size_t len, void *user)
{
	json_t *o = json_parse(line, len, NULL), *v;
	const json_t *m = json_object_get(o, "message");
	const char *role = json_get_str(m, "role");
	struct seen *s = user;
	size_t i;

	assert_non_null(o);
	if (json_get_str(m, "errorMessage"))
		see_text(s, "failed", json_get_str(m, "errorMessage"));
	if (role)
		json_array_foreach(json_object_get(m, "content"), i, v)
			see_text(s, role, json_get_str(v, "text"));
	else
		see_text(s, "event", json_get_str(o, "eventType"));
	json_decref(o);
}

static inline struct seen seen(struct world *w, const char *session, const char *role,
			       const char *text)
{
	struct seen s = {.role = role, .text = text};

	session_lines(w->core, session, see_entry, &s);
	return s;
}

static inline void assert_said(struct world *w, const char *session, const char *text)
{
	struct seen s = seen(w, session, "assistant", text);

	if (s.n == 0)
		fail_msg("never said: %s; last: %s", text,
			 seen(w, session, "assistant", NULL).last);
}

/* Good until the next call. */
static inline char *session_file(struct world *w, const char *session, const char *kind)
{
	static char path[800];
	char command[900];
	FILE *f;

	snprintf(command, sizeof(command), "ls %s/sessions/*/*_%s%s.jsonl", w->root, session, kind);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(path, sizeof(path), f));
	pclose(f);
	path[strcspn(path, "\n")] = 0;
	return path;
}

/* What the model was sent, marks included. */
static inline char *messages(struct world *w, const char *session)
{
	size_t len;

	return unit_read(session_file(w, session, ".messages"), &len);
}

static inline void open_anew(struct world *w, const char *id)
{
	reopen(w);
	idle(w, id);
}

static inline void assert_sent(struct world *w, const char *session, const char *text, bool sent)
{
	char *data = messages(w, session);
	bool found = strstr(data, text) != NULL;

	if (found != sent)
		fail_msg("%s in the messages: %s", sent ? "not" : "stands", text);
	free(data);
}

static inline void keep_last(struct proposal *p, void *user)
{
	snprintf(user, 24, "%s", p->id);
}

/* The oldest that waits; "" none does. */
static inline const char *pending(struct world *w)
{
	static char id[24];

	id[0] = 0;
	ops_proposals(w->core, false, keep_last, id);
	return id;
}

static inline void keep_first(struct proposal *p, void *user)
{
	if (!*(char *)user)
		snprintf(user, 24, "%s", p->id);
}

static inline const char *newest_pending(struct world *w)
{
	static char id[24];

	id[0] = 0;
	ops_proposals(w->core, false, keep_first, id);
	return id;
}

static inline void keep_task(const struct op_status *s, void *user)
{
	snprintf(user, 200, "%s", s->task);
}

static inline const char *the_task(struct world *w)
{
	static char task[200];

	runs_now(w->core, true, 1000, keep_task, task);
	return task;
}

static inline void count_run(const struct op_status *s, void *user)
{
	++*(unsigned *)user;
}

static inline unsigned runs(struct world *w)
{
	unsigned n = 0;

	runs_now(w->core, true, 1000, count_run, &n);
	return n;
}

static inline void run_spawned(int rv, const struct op_status *s, const struct ava_error *err,
			       void *user)
{
	if (rv != 0)
		fail_msg("%s", err->text);
	snprintf(user, 24, "%s", s->id);
}

/* A run as it is asked for by a test; and what becomes of it, with its id. */
#define A_RUN(...)                                                                                 \
	{                                                                                          \
		.role = "researcher", .user_id = "ben", .origin = "test",                          \
		.timeout_ms = AVA_DEFAULT, .max_cost_microusd = AVA_DEFAULT,                       \
		.max_tokens = AVA_DEFAULT, .max_iterations = AVA_DEFAULT, __VA_ARGS__              \
	}

static inline struct run *spawn(struct world *w, const struct op_spawn *s, char run[24])
{
	run[0] = 0;
	ops_spawn(w->core, s, run_spawned, run);
	for (int i = 0; !run[0] && i < 6000; i++)
		os_loop_step(w->loop, 10);
	return supervisor_find(&w->core->sup, run);
}

/* It waits for a person. */
static inline void asks_person(struct world *w, struct run *r)
{
	for (int i = 0; !person_question(r) && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_non_null(person_question(r));
}

/* A run of this conversation that waits for a person, and its id. */
static inline struct run *waiting(struct world *w, const char *session, const char *lines,
				  const char *before, char run[24])
{
	struct op_spawn s =
		A_RUN(.task = "ask", .model = script(w, lines), .session_id = session,
		      .cwd = w->src, .ask_before = &before, .nask_before = before != NULL);
	struct run *r = spawn(w, &s, run);

	assert_non_null(r);
	asks_person(w, r);
	return r;
}

#endif
