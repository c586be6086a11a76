/* The whole runtime on a disk in memory: opened, asked for runs, worked off; and a film of the
 * disk, with a picture before each call that changes or syncs something. */
#ifndef CRASH_CORE_DISK_H
#define CRASH_CORE_DISK_H

#include "crash.h"

#include <sys/stat.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "base/settings.h"
#include "life.h"
#include "os/loop.h"
#include "runs_now.h"

#define CORE_RUNS 8

struct world {
	char src[256]; /* a real folder, with a.c in it */
	const char *model;
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
	char ids[CORE_RUNS][32];
	_Atomic int accepted; /* the first ids are whole */
	char told[400];       /* what the runtime logged last */
};

static inline void core_on_log(const char *line, void *user)
{
	struct world *w = user;

	snprintf(w->told, sizeof(w->told), "%s", line);
}

static inline struct core_options core_options_of(struct world *w)
{
	return (struct core_options){.loop = w->loop,
				     .root = "/",
				     .log = core_on_log,
				     .log_user = w,
				     .settings = &w->settings,
				     .model = w->model,
				     .segment_bytes = 128 << 10};
}

static inline void core_begin(struct world *w, struct memdisk *d)
{
	struct core_options o = core_options_of(w);
	struct ava_error err = {0};

	memdisk_use(d);
	if (core_open(&w->core, &o, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static inline void core_work_off(struct world *w)
{
	for (int i = 0; !core_idle(w->core) && i < 100000; i++)
		os_loop_step(w->loop, 5);
	assert_true(core_idle(w->core));
}

static inline void core_end(struct world *w)
{
	core_work_off(w);
	core_close(w->core);
	w->core = NULL;
	memdisk_use(NULL);
}

static inline void core_on_spawn(int rv, const struct op_status *s, const struct ava_error *err,
				 void *user)
{
	struct world *w = user;
	int n = atomic_load(&w->accepted);

	if (rv != 0)
		fail_msg("spawn: %s", err->text);
	snprintf(w->ids[n], sizeof(w->ids[0]), "%s", s->id);
	atomic_store(&w->accepted, n + 1);
}

/* A run, and that it was accepted; `model` NULL: the usual one. */
static inline void core_ask(struct world *w, const char *model)
{
	struct op_spawn s = spawn_usual("Where is parse_header defined and who calls it?", w->src);
	int before = atomic_load(&w->accepted);

	s.model = model;
	ops_spawn(w->core, &s, core_on_spawn, w);
	for (int i = 0; atomic_load(&w->accepted) == before && i < 100000; i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(atomic_load(&w->accepted), before + 1);
}

/* `script` becomes /script.jsonl. */
static inline void core_set_up(struct world *w, struct memdisk *d, const char *model,
			       const char *script)
{
	static const char source[] = "int parse_header(const char *s);\n";
	char path[300];

	*w = (struct world){.model = model, .loop = os_loop_new(NULL)};
	assert_non_null(w->loop);
	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->settings.disk_ballast_mb = 0;
	snprintf(w->src, sizeof(w->src), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/a.c", w->src);
	unit_write(path, source, strlen(source));
	memdisk_write(d, "/script.jsonl", script, strlen(script));
	memdisk_power_cut(d, memdisk_all, NULL);
}

static inline void core_tear_down(struct world *w)
{
	os_loop_free(w->loop);
	unit_rmdir(w->src);
}

/* ---- a film of a disk */

struct film {
	struct {
		struct memdisk *d;
		int accepted; /* runs, at that moment */
	} at[20000];
	size_t n;
	struct world *w;
};

static inline void film_on_call(struct memdisk *d, void *user)
{
	struct film *f = user;

	if (f->n == ARRAY_LEN(f->at))
		return;
	f->at[f->n].accepted = atomic_load(&f->w->accepted);
	f->at[f->n++].d = memdisk_snapshot(d);
}

static inline void film_fini(struct film *f)
{
	for (size_t i = 0; i < f->n; i++)
		memdisk_free(f->at[i].d);
	f->n = 0;
}

#endif
