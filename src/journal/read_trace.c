/* The reader of log files, whose lines become the events of a trace. A line
 * that is no event is told and left out, as every reader of a log does it.
 *
 * What can fail: no such run, the files, memory. */
#include "journal/read_trace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "journal/read.h"

static bool looks_like_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len < sizeof(((struct trace_name *)0)->text) && s[0] != '-' &&
	       strchr(s, '-') != NULL && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int read_run_named(const char *root, const char *name, struct run_id *run, struct ava_error *err)
{
	int fd, rv;

	if (id_is_run(name)) {
		snprintf(run->text, sizeof(run->text), "%s", name);
		return 0;
	}
	if (!looks_like_name(name))
		return err_set(err, AVA_EINVAL,
			       "\"%.60s\" is neither the id of a run (S-7f3a2b) nor the name of a "
			       "trace (brave-otter)",
			       name);
	fd = read_open_root(root, err);
	if (fd < 0)
		return fd;
	rv = read_find_trace(fd, name, run, err);
	close(fd);
	return rv;
}

static int read_all(struct ava_trace *t, struct ava_log *log,
		    void (*bad)(const char *sentence, void *user), void *user,
		    struct ava_error *err)
{
	struct ava_log_event e;
	int rv;

	while ((rv = ava_log_next(log, &e, err)) != 0) {
		if (rv == 1)
			rv = ava_trace_append(t, e.line, e.len, err);
		if (rv == AVA_EINVAL)
			rv = err_wrap(err, AVA_ECORRUPT, "%s:%llu", e.file,
				      (unsigned long long)e.offset);
		if (rv == AVA_ECORRUPT && bad != NULL)
			bad(err->text, user);
		else if (rv < 0)
			return rv;
	}
	return 0;
}

int ava_trace_read(struct ava_trace **out, const char *root, const char *run,
		   void (*bad)(const char *sentence, void *user), void *user, struct ava_error *err)
{
	struct ava_error own;
	struct ava_log_query q = {.root = root};
	struct ava_log *log = NULL;
	struct ava_trace *t = NULL;
	struct run_id id;
	char path[4096];
	int rv;

	err = err != NULL ? err : &own;
	*out = NULL;
	rv = root != NULL ? 0 : settings_data_root(path, sizeof(path), err);
	if (rv == 0)
		rv = read_run_named(root != NULL ? root : path, run, &id, err);
	q.run = id.text;
	if (rv == 0)
		rv = ava_log_open(&log, &q, err);
	if (rv != 0)
		return rv;
	rv = ava_trace_new(&t, "", NULL, err);
	if (rv == 0)
		rv = read_all(t, log, bad, user, err);
	ava_log_close(log);
	if (rv != 0) {
		ava_trace_free(t);
		return rv;
	}
	*out = t;
	return 0;
}
