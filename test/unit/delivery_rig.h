/* A person who is away, and one who looks: real conversations and runs of the
 * offline model in a data root of their own, and what is delivered of them. */
#ifndef DELIVERY_RIG_H
#define DELIVERY_RIG_H

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/delivery.h"
#include "ava/ops.h"
#include "ava/sessions.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "os/loop.h"

#define ASK "Find where parse_header is defined"

struct world {
	char dir[256], root[300], src[300], notify[700], took[300];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
	int scripts;
};

static inline int try_open(struct world *w, struct ava_error *err)
{
	struct core_options o = {.loop = w->loop,
				 .root = w->root,
				 .settings = &w->settings,
				 .model = "offline",
				 .notify = w->notify};

	return core_open(&w->core, &o, err);
}

static inline void open_core(struct world *w)
{
	struct ava_error err = {0};

	if (try_open(w, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static inline void reopen(struct world *w)
{
	core_close(w->core);
	open_core(w);
}

static inline int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char path[400];

	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/data", w->dir);
	snprintf(w->src, sizeof(w->src), "%s/src", w->dir);
	snprintf(w->took, sizeof(w->took), "%s/took", w->dir);
	mkdir(w->root, 0700);
	mkdir(w->src, 0700);
	snprintf(path, sizeof(path), "%s/parser.c", w->src);
	unit_write(path, "int parse_header(const char *s)\n{\n\treturn 0;\n}\n", 47);
	settings_defaults(&w->settings);
	w->settings.disk_free_min_mb = 0;
	w->settings.notify_retry_s = 0;
	w->settings.notify_timeout_s = 120;
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	*state = w;
	return 0;
}

static inline int tear_down(void **state)
{
	struct world *w = *state;

	if (w->core)
		core_close(w->core);
	os_loop_free(w->loop);
	unit_rmdir(w->dir);
	free(w);
	return 0;
}

/* notify.exec: this shell script, with "$0" the file for what it took. */
static inline void set_notify(struct world *w, const char *script)
{
	char path[300];
	int n;

	snprintf(path, sizeof(path), "%s/notify.sh", w->dir);
	unit_write(path, script, strlen(script));
	n = snprintf(w->notify, sizeof(w->notify), "/bin/sh%c-c%c. %s%c%s%c", 0, 0, path, 0,
		     w->took, 0);
	assert_true(n > 0 && n < (int)sizeof(w->notify) - 1);
	w->notify[n] = 0;
}

/* ---- a person */

static inline const char *begin(struct world *w, const char *model, char id[64])
{
	struct op_session_new n = {.cwd = w->src, .user_id = "ben", .model = model};
	struct op_session s;

	assert_int_equal(ops_session_new(w->core, &n, &s, NULL), 0);
	snprintf(id, 64, "%s", s.id);
	return id;
}

static inline const char *script(struct world *w, const char *lines)
{
	static char id[500];
	char path[400];

	snprintf(path, sizeof(path), "%s/script%d.jsonl", w->dir, w->scripts++);
	unit_write(path, lines, strlen(lines));
	snprintf(id, sizeof(id), "offline:%s", path);
	return id;
}

static inline void said(int rv, const char *entry, const struct ava_error *err, void *user)
{
	assert_int_equal(rv, 0);
	*(bool *)user = true;
}

static inline void step_while(struct world *w, const bool *yes, bool wanted)
{
	for (int i = 0; *yes == wanted && i < 12000; i++)
		os_loop_step(w->loop, 10);
	assert_true(*yes != wanted);
}

/* Said, answered, and all runs have ended. */
static inline void tell(struct world *w, const char *session, const char *text)
{
	struct op_say s = {.text = text, .user_id = "ben"};
	struct op_session now;
	bool done = false, busy = true;

	ops_say(w->core, session, &s, said, &done);
	step_while(w, &done, false);
	for (int i = 0; busy && i < 12000; i++) {
		os_loop_step(w->loop, 10);
		assert_int_equal(ops_session(w->core, session, &now, NULL), 0);
		busy = now.busy || now.waiting > 0 || now.live_runs > 0;
	}
	assert_false(busy);
}

/* ---- a client */

struct view {
	char summary[200], types[2000], text[9000], title[300];
	uint64_t lsn, first;
	unsigned n;
	bool cut;
};

static inline void see_item(struct view *v, const json_t *o)
{
	size_t at = strlen(v->types);

	if (v->n++ == 0)
		v->first = (uint64_t)json_get_int(o, "lsn", 0);
	snprintf(v->types + at, sizeof(v->types) - at, "%.1s",
		 strncmp(json_get_str(o, "type"), "Spawn", 5) == 0 ? json_get_str(o, "type") + 5
								   : json_get_str(o, "type"));
	snprintf(v->text, sizeof(v->text), "%s", json_get_str(o, "text"));
	snprintf(v->title, sizeof(v->title), "%s", json_get_str(o, "title"));
	v->cut = json_get_bool(o, "cut", false);
}

static inline int look(struct world *w, const char *session, const char *channel, struct view *v)
{
	struct buf b;
	struct jw jw;
	json_t *o;
	int rv;

	*v = (struct view){.n = 0};
	buf_init(&b, 64u << 20);
	jw_init(&jw, &b);
	rv = ops_unseen(w->core, session, channel, &jw, NULL);
	o = rv == 0 ? json_parse(b.data, b.len, NULL) : NULL;
	snprintf(v->summary, sizeof(v->summary), "%s", json_str(o, "summary"));
	v->lsn = (uint64_t)json_get_int(o, "lsn", 0);
	for (size_t i = 0; i < json_array_size(json_object_get(o, "items")); i++)
		see_item(v, json_array_get(json_object_get(o, "items"), i));
	json_decref(o);
	buf_fini(&b);
	return rv;
}

static inline struct view unseen(struct world *w, const char *session)
{
	struct view v;

	assert_int_equal(look(w, session, "terminal", &v), 0);
	return v;
}

struct answer {
	bool done;
	int rv;
	unsigned acknowledged, unseen;
	char text[300];
};

static inline void acked(int rv, unsigned acknowledged, unsigned left, const struct ava_error *err,
			 void *user)
{
	struct answer *a = user;

	*a = (struct answer){true, rv, acknowledged, left, ""};
	snprintf(a->text, sizeof(a->text), "%.290s", err ? err->text : "");
}

static inline struct answer ack(struct world *w, const char *session, const char *channel,
				uint64_t lsn)
{
	struct answer a = {false};

	ops_ack(w->core, session, channel, lsn, acked, &a);
	step_while(w, &a.done, false);
	return a;
}

#endif
