/* The runtime in a data root of its own, with an empty folder beside it. */
#ifndef UNIT_WORLD_H
#define UNIT_WORLD_H

#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ava/core.h"
#include "base/settings.h"
#include "os/loop.h"

struct world {
	char dir[256], root[300], src[300];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
	const char *model; /* of all runs; NULL: what they ask for */
	size_t segment_bytes;
	char notify[700];    /* notify.exec; "": none */
	char names[64][500]; /* of the last conversations and models that were made (talk_rig.h) */
	int scripts, named;
};

static inline int try_open(struct world *w, struct ava_error *err)
{
	struct core_options o = {.loop = w->loop,
				 .root = w->root,
				 .settings = &w->settings,
				 .model = w->model,
				 .segment_bytes = w->segment_bytes,
				 .notify = w->notify};

	w->core = NULL;
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

static inline void write_file(const char *dir, const char *name, const char *text)
{
	char path[700];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unit_write(path, text, strlen(text));
}

/* Not open yet. */
static inline struct world *world_new(const char *model)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/data", w->dir);
	snprintf(w->src, sizeof(w->src), "%s/src", w->dir);
	mkdir(w->root, 0700);
	mkdir(w->src, 0700);
	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->settings.disk_ballast_mb = 0;
	w->model = model;
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	return w;
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

#endif
