/* Making a runtime of either kind, and living inside another loop.
 *
 * Nothing moves behind the program's back: an embedded runtime turns its loop
 * only inside calls, and callbacks are called in ava_runtime_process alone,
 * after the loop has turned, so they may call whatever they like. What a turn
 * brought while no process call was under way is remembered by `woken`, and
 * ava_runtime_timeout then says not to wait. */
#include "api/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "api/embedded.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"
#include "client/remote.h"

#define ID_MAX 128

void runtime_begin(struct ava_runtime *rt, struct ava_error **err, struct ava_error *own)
{
	answer_reset(&rt->answer);
	if (!*err)
		*err = own;
	**err = (struct ava_error){0};
}

int runtime_id(const char *what, const char *id, struct ava_error *err)
{
	if (!id || !*id)
		return err_set(err, AVA_EINVAL, "no %s was given", what);
	if (strlen(id) > ID_MAX)
		return err_set(err, AVA_ENOENT, "there is no %s of that name", what);
	return 0;
}

/* ---- life */

static int make(struct ava_runtime **out, struct ava_error *err)
{
	struct ava_runtime *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return err_set(err, AVA_ENOMEM, "out of memory");
	answer_init(&rt->answer);
	list_init(&rt->events);
	list_init(&rt->watches);
	*out = rt;
	return 0;
}

static int give(int rv, struct ava_runtime *made, struct ava_runtime **rt)
{
	if (rv != 0)
		free(made);
	*rt = rv == 0 ? made : NULL;
	return rv;
}

int ava_runtime_new(struct ava_runtime **rt, const struct ava_options *options,
		    struct ava_error *err)
{
	struct ava_runtime *made = NULL;
	struct ava_error own;
	int rv;

	*rt = NULL;
	if (!err)
		err = &own;
	*err = (struct ava_error){0};
	if (!options || !options->root || options->root[0] != '/')
		return err_set(err, AVA_EINVAL, "an embedded runtime needs an absolute data root");
	if (options->env && options->process_env)
		return err_set(err, AVA_EINVAL, "env and process_env exclude each other");
	rv = make(&made, err);
	if (rv == 0)
		rv = embedded_open(options, &made->b, err);
	return give(rv, made, rt);
}

int ava_runtime_connect(struct ava_runtime **rt, const struct ava_options *options,
			struct ava_error *err)
{
	const char *root = options ? options->root : NULL;
	bool start = !options || !options->no_start;
	struct ava_runtime *made = NULL;
	struct ava_error own;
	char path[4096];
	int rv = 0;

	*rt = NULL;
	if (!err)
		err = &own;
	*err = (struct ava_error){0};
	if (!root) {
		rv = settings_data_root(path, sizeof(path), err);
		root = path;
	} else if (root[0] != '/') {
		rv = err_set(err, AVA_EINVAL, "the data root must be an absolute path");
	}
	if (rv == 0)
		rv = make(&made, err);
	if (rv == 0)
		rv = remote_open(root, start, &made->b, err);
	return give(rv, made, rt);
}

void ava_runtime_free(struct ava_runtime *rt)
{
	if (!rt)
		return;
	events_close_all(rt);
	rt->b->ops->close(rt->b);
	answer_fini(&rt->answer);
	free(rt);
}

/* ---- the other loop */

int ava_runtime_fd(struct ava_runtime *rt)
{
	return rt->b->ops->fd(rt->b);
}

int ava_runtime_timeout(struct ava_runtime *rt)
{
	return rt->b->woken || rt->more ? 0 : rt->b->ops->timeout(rt->b);
}

static int process(struct ava_runtime *rt, int timeout_ms, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + timeout_ms;
	int rv = rt->b->ops->step(rt->b, 0, err), left = timeout_ms;

	for (;;) {
		rt->b->woken = rt->more = false;
		if (rv == 0)
			rv = watch_dispatch(rt, err);
		if (rv != 0 || left == 0)
			return rv;
		if (!rt->b->woken && !rt->more)
			rv = rt->b->ops->step(rt->b, left, err);
		if (timeout_ms > 0)
			left = (int)MAX(end - clock_mono_ms(), 0);
	}
}

int ava_runtime_process(struct ava_runtime *rt, int timeout_ms, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	if (!err)
		err = &own;
	*err = (struct ava_error){0};
	if (rt->in_process)
		return err_set(err, AVA_EBUSY, "a callback must not process its runtime");
	rt->in_process = true;
	rv = process(rt, timeout_ms < 0 ? -1 : timeout_ms, err);
	rt->in_process = false;
	return rv;
}
