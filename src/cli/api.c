/* Requests to the daemon; api.h. What the daemon answers as an error becomes
 * an error object with its code and sentence; an answer that is not the JSON
 * it should be is AVA_EPROTO. */
#include "cli/api.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/settings.h"
#include "cli/cli.h"
#include "cli/root.h"
#include "codec/json.h"

#define PREFIX      "/api/v1"
#define INSIST_MAX  5
#define TEXTS_MAX   ((size_t)16 << 20)
#define OPEN_MAX    6
#define REPLACE_MS  10000 /* for an older daemon to go and a new one to come */
#define ANSWER_MORE 30000 /* beyond the time a request asks the daemon to wait */
#define SLOW_MS     2000  /* a person should know what is waited for */
#define GIVE_UP_MS  60000 /* of a daemon that does not come back */
#define UNWELL_MS   4000  /* for the answer of a daemon that cannot write, from then on */

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

int api_compare_versions(const char *a, const char *b)
{
	for (int i = 0; i < 3; i++) {
		char *enda, *endb;
		long x = strtol(a, &enda, 10), y = strtol(b, &endb, 10);

		if (x != y)
			return x < y ? -1 : 1;
		a = *enda == '.' ? enda + 1 : enda;
		b = *endb == '.' ? endb + 1 : endb;
	}
	return 0;
}

static int parse_reply(const struct client_reply *r, json_t **out, struct ava_error *err)
{
	*out = json_parse(r->body, r->len, err);
	if (*out == NULL)
		return err_wrap(err, AVA_EPROTO, "the daemon's answer");
	return 0;
}

/* The daemon has taken a request and does not answer it. It answers others
 * while it waits for its disk. */
static int64_t slow(void *user)
{
	char root[ROOT_PATH_MAX];
	struct client *c = NULL;
	json_t *health = NULL;
	int64_t more = -1;
	int rv = settings_data_root(root, sizeof(root), NULL);

	if (rv == 0)
		rv = client_open(root, false, &c, NULL);
	if (rv == 0) {
		client_set_quiet(c, SLOW_MS);
		rv = api_get(c, &health, NULL, "/health");
	}
	if (rv == 0 && json_str(health, "problem")[0] != '\0') {
		cli_note("waiting for the daemon, which has a problem: %s",
			 json_str(health, "problem"));
		more = UNWELL_MS;
	} else {
		cli_note("waiting for the daemon, which %s",
			 rv == 0 ? "is slow to answer" : "answers nothing");
	}
	json_decref(health);
	client_close(c);
	return more;
}

/* Nothing came back, which says nothing about what was done. */
static int unanswered(const char *method, int rv, struct ava_error *err)
{
	if (rv != AVA_ETIMEOUT || strcmp(method, "POST") != 0)
		return rv;
	return err_set(err, AVA_EUNKNOWN,
		       "the daemon has not acknowledged this: it may or may not be done, once the "
		       "daemon is well \"ava ps -a\" and \"ava proposals -a\" show it");
}

static int call(struct client *c, const char *method, const char *path, const char *body,
		json_t **out, int *status, struct ava_error *err)
{
	struct client_reply r;
	char full[512];
	int rv;

	*out = NULL;
	snprintf(full, sizeof(full), PREFIX "%s", path);
	rv = client_call(c, method, full, body, &r, err);
	if (rv != 0)
		return rv;
	if (status != NULL)
		*status = r.status;
	rv = parse_reply(&r, out, err);
	client_reply_fini(&r);
	return rv;
}

int api_texts(struct buf *body, struct ava_error *err, ...)
{
	const char *name;
	struct jw w;
	va_list ap;
	int rv;

	buf_init(body, TEXTS_MAX);
	jw_init(&w, body);
	jw_object(&w, NULL);
	va_start(ap, err);
	while ((name = va_arg(ap, const char *)) != NULL)
		jw_str(&w, name, va_arg(ap, const char *));
	va_end(ap);
	jw_end(&w);
	rv = buf_check(body);
	return rv == 0 ? 0 : err_set(err, rv, "the text is too long");
}

int api_call(struct client *c, const char *method, const char *path, const char *body, json_t **out,
	     int *status, struct ava_error *err)
{
	return unanswered(method, call(c, method, path, body, out, status, err), err);
}

int api_get(struct client *c, json_t **out, struct ava_error *err, const char *path_fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, path_fmt);
	vsnprintf(path, sizeof(path), path_fmt, ap);
	va_end(ap);
	return api_call(c, "GET", path, NULL, out, NULL, err);
}

/* An older daemon with nothing to do has been asked to leave: the one that is
 * started next is ours. */
static int replace(struct client **c, const char *root, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + REPLACE_MS;
	struct client_reply r;
	int rv = client_call(*c, "POST", PREFIX "/shutdown", "{\"when\":\"idle\"}", &r, err);

	if (rv != 0)
		return rv;
	client_reply_fini(&r);
	for (;;) {
		json_t *health = NULL;
		const char *version;
		bool old = true;

		client_close(*c);
		rv = client_open(root, true, c, err);
		if (rv == 0)
			client_set_slow(*c, SLOW_MS, slow, NULL);
		if (rv == 0 && api_get(*c, &health, err, "/health") == 0) {
			version = json_get_str(health, "version");
			old = version == NULL || api_compare_versions(version, ava_version()) < 0;
		}
		json_decref(health);
		if (rv != 0 || !old || clock_mono_ms() > end)
			return rv;
		pause_ms(20);
	}
}

/* The daemon goes on with the keys it was started with. */
static void check_keys(const json_t *health)
{
	const json_t *marks = json_object_get(health, "keys");
	const char *salt = json_get_str(marks, "salt");
	char mark[KEYS_MARK_LEN + 1];
	struct ava_error err;

	if (salt == NULL)
		return; /* an older daemon */
	if (keys_load(&err) != 0) {
		cli_note("%s", err.text);
		return;
	}
	for (size_t i = 0; keys_known[i] != NULL; i++) {
		const char *theirs = json_get_str(marks, keys_known[i]);

		if (theirs == NULL || !keys_mark(salt, keys_known[i], mark) || mark[0] == '\0' ||
		    strcmp(mark, theirs) == 0)
			continue;
		cli_note("the daemon has %s %s: it keeps what it was started with; to use yours, "
			 "end it (kill %" PRId64 "), the next command starts one",
			 theirs[0] != '\0' ? "another" : "no", keys_known[i],
			 json_get_int(health, "pid", 0));
	}
	keys_wipe();
}

static int check_version(struct client **c, const char *root, bool note, struct ava_error *err)
{
	json_t *health;
	const char *version;
	bool busy, old;
	int rv = api_get(*c, &health, err, "/health");

	if (rv != 0)
		return rv;
	version = json_get_str(health, "version");
	busy = json_get_int(json_object_get(health, "runs"), "running", 0) > 0 ||
	       json_get_int(health, "queued", 0) > 0;
	old = version != NULL && api_compare_versions(version, ava_version()) < 0;
	if (note && json_str(health, "problem")[0] != '\0')
		cli_note("the daemon has a problem: %s", json_str(health, "problem"));
	if (old && busy)
		cli_note("the daemon is version %s, older than this ava (%s): it is replaced at "
			 "the first command after its runs have ended",
			 version, ava_version());
	if (!old || busy)
		check_keys(health);
	json_decref(health);
	return old && !busy ? replace(c, root, err) : 0;
}

static int open_root(bool start, bool note, struct client **c, struct ava_error *err)
{
	char root[ROOT_PATH_MAX];
	int rv = settings_data_root(root, sizeof(root), err);

	*c = NULL;
	for (int i = 0; rv == 0; i++) {
		rv = client_open(root, start, c, err);
		if (rv != 0)
			return rv;
		client_set_slow(*c, SLOW_MS, slow, NULL);
		rv = start ? check_version(c, root, note, err) : 0;
		if (rv == 0)
			return 0;
		client_close(*c);
		*c = NULL;
		/* It hung up on us: a daemon that was killed, or has just left, still
		 * listens for a moment. Its successor is asked. */
		if (rv == AVA_ECONNECT && i + 1 < OPEN_MAX) {
			pause_ms(20L << i);
			rv = 0;
		}
	}
	return rv;
}

int api_open(bool start, struct client **c, struct ava_error *err)
{
	return open_root(start, true, c, err);
}

int api_open_to_begin(struct client **c, struct ava_error *err)
{
	return open_root(true, false, c, err);
}

int api_insist(struct client **c, const char *path, const char *body, json_t **out,
	       struct ava_error *err)
{
	int rv = AVA_ECONNECT;

	for (int i = 0; i < INSIST_MAX; i++) {
		if (i > 0)
			pause_ms(100L << i);
		if (*c == NULL && (rv = api_open_to_begin(c, err)) != 0)
			continue;
		rv = call(*c, "POST", path, body, out, NULL, err);
		if (rv != AVA_EUNKNOWN && rv != AVA_ECONNECT)
			return unanswered("POST", rv, err);
		client_close(*c);
		*c = NULL;
	}
	return rv;
}

int api_result(struct client *c, const char *run, int wait_s, json_t **result,
	       struct ava_error *err)
{
	char path[96];
	int status, rv;

	*result = NULL;
	snprintf(path, sizeof(path), "/runs/%s/result?wait=%d", run, wait_s);
	client_set_quiet(c, (int64_t)wait_s * 1000 + ANSWER_MORE);
	client_set_slow(c, SLOW_MS + (int64_t)wait_s * 1000, slow, NULL);
	rv = api_call(c, "GET", path, NULL, result, &status, err);
	client_set_slow(c, SLOW_MS, slow, NULL);
	if (rv == 0 && status == 202) { /* the status of a run that goes on */
		json_decref(*result);
		*result = NULL;
	}
	return rv;
}

static int connect_again(struct client **c, void *user, struct ava_error *err)
{
	return api_open(true, c, err);
}

int api_follow(struct client **c, const char *run, struct follow *f, struct ava_error *err)
{
	snprintf(f->path, sizeof(f->path), PREFIX "/runs/%s/events", run);
	f->of_run = true;
	f->connect = connect_again;
	return follow_run(f, c, err);
}

int api_until(struct client **c, int (*step)(struct client *c, void *user, struct ava_error *err),
	      void *user, int64_t end_ms, struct ava_error *err)
{
	int64_t give_up = clock_mono_ms() + GIVE_UP_MS;

	for (;;) {
		int rv = *c != NULL ? 0 : api_open(true, c, err);

		if (rv == 0)
			rv = step(*c, user, err);
		if (rv == 1)
			return 0;
		if (rv == 0) {
			give_up = clock_mono_ms() + GIVE_UP_MS;
			continue;
		}
		if (rv == AVA_EIO || !follow_may_come_back(rv))
			return rv;
		client_close(*c); /* its successor is asked */
		*c = NULL;
		if (end_ms >= 0 && clock_mono_ms() >= end_ms)
			return 0;
		if (clock_mono_ms() >= give_up)
			return rv;
	}
}
