/* ava steer S-id TEXT: say something to a run, or answer what it asks.
 *
 * An answer is done with when it is on disk. A message is read at the next
 * turn boundary, which may be minutes away: the run's events say when, and
 * this waits for it unless told not to (exit 124 when the time is up; the
 * message stays). A run that ended before it read it: exit 1. The request has an id
 * of its own: asked again after a lost connection it is kept once. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"

#define TEXT_MAX 8192

static struct {
	const char *call;
	int64_t timeout_ms;
	bool no_wait, json;
} o;

static const struct opt opts[] = {
	OPT("call", 0, STR, "ID", call, "only as the answer to this question (as c3.1)"),
	OPT("timeout", 0, SECONDS, "S", timeout_ms, "wait at most so long until it is read"),
	OPT("no-wait", 0, FLAG, NULL, no_wait, "do not wait until it is read"),
	OPT("json", 0, FLAG, NULL, json, "what became of it as JSON"),
};

/* ---- what becomes of it */

struct wait {
	const char *steer_id;
	char outcome[24];
	int64_t end_ms;
	bool late;
};

static int on_event(const struct sse_event *e, void *user)
{
	struct wait *w = user;
	json_t *event;
	const json_t *content;

	if (strcmp(e->event, "Steering") != 0)
		return 0;
	event = json_parse(e->data, e->len, NULL);
	content = json_object_get(event, "content");
	if (strcmp(json_str(content, "steerId"), w->steer_id) == 0 &&
	    strcmp(json_str(content, "outcome"), "queued") != 0)
		snprintf(w->outcome, sizeof(w->outcome), "%s", json_str(content, "outcome"));
	json_decref(event);
	return w->outcome[0] != '\0';
}

static volatile sig_atomic_t stopped;

/* The deadline passed without an event: the next call ends at once. */
static void on_tick(int64_t *tick_ms, void *user)
{
	((struct wait *)user)->late = true;
	*tick_ms = INT64_MAX;
	stopped = 1;
}

/* Until the event that says what became of it. 0, or why not. */
static int wait_for(struct wait *w, struct client **c, const char *run, struct ava_error *err)
{
	struct follow f = {.on_event = on_event, .user = w};
	int rv;

	if (w->end_ms >= 0) {
		f.on_tick = on_tick;
		f.tick_ms = w->end_ms;
		f.interrupt = &stopped;
	}
	rv = api_follow(c, run, &f, err);
	return w->late ? 0 : MIN(rv, 0);
}

/* ---- the request */

static int post(struct client **c, const char *run, const char *text, json_t **reply,
		struct ava_error *err)
{
	struct session_id request = id_session();
	char path[64];
	struct buf body;
	int rv = api_texts(&body, err, "text", text, "request_id", request.text,
			   o.call != NULL ? "call_id" : NULL, o.call, NULL);

	snprintf(path, sizeof(path), "/runs/%s/steer", run);
	if (rv == 0)
		rv = api_insist(c, path, body.data, reply, err);
	buf_fini(&body);
	return rv;
}

static int tell(const char *run, json_t *reply, const char *outcome)
{
	bool late = strcmp(outcome, "too_late") == 0;

	if (o.json) {
		json_object_set_new(reply, "outcome", json_string(outcome));
		show_json(stdout, reply);
	} else if (strcmp(outcome, "answered") == 0) {
		printf("%s has its answer.\n", run);
	} else if (strcmp(outcome, "delivered") == 0) {
		printf("%s has read it.\n", run);
	} else if (!late) {
		printf("%s reads it after what it is doing now.\n", run);
	}
	return late ? cli_error(CLI_FAILED, "%s ended before it read that", run) : CLI_DONE;
}

static int steer(struct client **c, const char *run, const char *text)
{
	struct wait w = {.end_ms =
				 o.timeout_ms != OPT_ABSENT ? clock_mono_ms() + o.timeout_ms : -1};
	struct ava_error err = {0};
	json_t *reply = NULL;
	int rv = post(c, run, text, &reply, &err), code;

	if (rv != 0)
		return cli_fail(&err);
	w.steer_id = json_str(reply, "steer_id");
	if (strcmp(json_str(reply, "outcome"), "queued") == 0 && !o.no_wait)
		rv = wait_for(&w, c, run, &err);
	if (rv < 0)
		code = cli_fail(&err);
	else if (w.late && w.outcome[0] == '\0')
		code = cli_error(CLI_WAITED,
				 "%s has not read it yet; it will, unless it ends "
				 "before",
				 run);
	else
		code = tell(run, reply,
			    w.outcome[0] != '\0' ? w.outcome : json_str(reply, "outcome"));
	json_decref(reply);
	return code;
}

/* The words as one text. */
static int join(char *out, size_t size, int n, char **words)
{
	size_t len = 0;

	out[0] = '\0';
	for (int i = 0; i < n && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? " " : "", words[i]);
	return len < size ? CLI_DONE : cli_error(CLI_USAGE, "the text is too long");
}

static int steer_run(int argc, char **argv)
{
	struct ava_error err;
	char text[TEXT_MAX];
	struct client *c;
	int code = cli_check_run_id(argv[0]);

	if (code == CLI_DONE)
		code = join(text, sizeof(text), argc - 1, argv + 1);
	if (code != CLI_DONE)
		return code;
	if (api_open(true, &c, &err) != 0)
		return cli_fail(&err);
	code = steer(&c, argv[0], text);
	client_close(c);
	return code;
}

const struct command cmd_steer = {
	.name = "steer",
	.args = "S-id TEXT",
	.min_args = 2,
	.max_args = -1,
	.summary = "tell a run something, or answer what it asks",
	OPTIONS(opts),
	.run = steer_run,
};
