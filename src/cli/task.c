/* The request of `ava run`; task.h. Everything is checked here that can be
 * told without the daemon, so that a mistake costs no round trip and is named
 * in the words of the command line. Nothing is kept beyond the call. */
#include "cli/task.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "client/spawn.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/schema.h"
#include "codec/utf8.h"

#define BODY_MAX  ((size_t)16 << 20)
#define GROUP_MAX ((size_t)16 << 20)

/* The spawn with its lists. */
static struct ava_spawn task_spawn(const struct task_options *o)
{
	struct ava_spawn s = o->spawn;

	s.grants = o->grants.n > 0 ? o->grants.items : NULL;
	s.ngrants = o->grants.n;
	s.ask_before = o->ask_before.n > 0 ? o->ask_before.items : NULL;
	s.nask_before = o->ask_before.n;
	s.tags = o->tags.n > 0 ? o->tags.items : NULL;
	s.ntags = o->tags.n;
	return s;
}

bool task_any(const struct task_options *o)
{
	const struct ava_spawn s = task_spawn(o);
	struct buf body;
	struct jw w;
	bool any;

	api_body(&w, &body, BODY_MAX);
	spawn_put(&w, &s);
	any = body.len > strlen("{");
	buf_fini(&body);
	return any || o->files.n > 0;
}

static bool task_blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (memchr(" \t\n\r", s[i], 4) == NULL)
			return false;
	return true;
}

static int task_check_text(const char *what, const char *s, size_t len, struct ava_error *err)
{
	if (memchr(s, '\0', len) != NULL)
		return err_set(err, AVA_EINVAL, "%s holds NUL bytes: only text can be given", what);
	if (!utf8_valid(s, len))
		return err_set(err, AVA_EINVAL,
			       "%s is not valid UTF-8: convert it first, for example with iconv",
			       what);
	return 0;
}

int task_read(struct buf *out, const char *text, int fd, struct ava_error *err)
{
	int rv;

	if (strcmp(text, "-") == 0)
		rv = cli_read(fd, "standard input", out, err);
	else if (strlen(text) <= TASK_MAX)
		rv = buf_adds(out, text) != 0 ? err_set(err, AVA_ENOMEM, "no memory") : 0;
	else
		rv = err_set(err, AVA_ETOOBIG, "x");
	if (rv == 0 && out->len > TASK_MAX)
		rv = AVA_ETOOBIG;
	if (rv == AVA_ETOOBIG)
		return err_set(err, rv,
			       "the task is over %zu KB: keep it short and hand the material over "
			       "with --file",
			       TASK_MAX >> 10);
	if (rv != 0)
		return rv;
	if (task_blank(out->data != NULL ? out->data : "", out->len))
		return err_set(err, AVA_EINVAL, "the task is empty: say what is to be done");
	return task_check_text("the task", out->data, out->len, err);
}

/* The bytes of a file, or of `fd` for "-", at most `room`; malloc'd. */
static int read_material(const char *path, int fd, size_t room, char **data, size_t *len,
			 struct ava_error *err)
{
	struct buf b;
	int rv;

	if (strcmp(path, "-") != 0)
		return sys_read_file(AT_FDCWD, path, room, data, len, err);
	buf_init(&b, room + 65536 * 2);
	rv = cli_read(fd, "standard input", &b, err);
	if (rv == 0 && b.len > room)
		rv = AVA_ETOOBIG;
	if (rv != 0) {
		buf_fini(&b);
		return rv;
	}
	*data = b.data;
	*len = b.len;
	return 0;
}

static int task_add_file(struct buf *out, const char *path, int fd, struct ava_error *err)
{
	size_t room = CONTEXT_MAX - MIN(out->len, CONTEXT_MAX), len = 0;
	char *data = NULL, what[320];
	int rv = read_material(path, fd, room, &data, &len, err);

	if (strcmp(path, "-") == 0)
		path = "standard input";

	snprintf(what, sizeof(what), "--file %.300s", path);
	if (rv == AVA_ETOOBIG)
		return err_set(err, rv, "%s: context and files together are over %zu KB", what,
			       CONTEXT_MAX >> 10);
	if (rv != 0)
		return err_wrap(err, rv == AVA_ENOENT ? AVA_EINVAL : rv, "--file");
	rv = task_check_text(what, data, len, err);
	if (rv == 0) {
		buf_addf(out, "%s--- file %s ---\n", out->len > 0 ? "\n" : "", path);
		buf_add(out, data, len);
	}
	free(data);
	return rv;
}

/* The JSON Schema in a file, checked (doc/SCHEMA.md), as one line. AVA_EINVAL names
 * its mistake. */
static int task_schema(struct buf *out, const char *path, struct ava_error *err)
{
	char *data = NULL;
	size_t len = 0;
	json_t *schema;
	int rv = sys_read_file(AT_FDCWD, path, SCHEMA_BYTES_MAX * 4, &data, &len, err);

	if (rv != 0)
		return err_wrap(err, rv == AVA_ENOENT ? AVA_EINVAL : rv, "--schema");
	schema = json_read_others(data, len, err);
	free(data);
	rv = schema != NULL ? schema_check(schema, err) : AVA_EINVAL;
	if (rv == 0)
		rv = json_dump(out, schema);
	json_decref(schema);
	return rv == 0 ? 0 : err_wrap(err, rv, "--schema %.300s", path);
}

bool task_file_is_stdin(const struct task_options *o)
{
	for (size_t i = 0; i < o->files.n; i++)
		if (strcmp(o->files.items[i], "-") == 0)
			return true;
	return false;
}

int task_context(struct buf *out, const struct task_options *o, int fd, struct ava_error *err)
{
	int rv = 0;

	if (o->spawn.context != NULL) {
		rv = task_check_text("--context", o->spawn.context, strlen(o->spawn.context), err);
		if (rv != 0)
			return rv;
		buf_adds(out, o->spawn.context);
	}
	for (size_t i = 0; rv == 0 && i < o->files.n; i++)
		rv = task_add_file(out, o->files.items[i], fd, err);
	if (rv == 0 && (out->len > CONTEXT_MAX || buf_check(out) != 0))
		rv = err_set(err, AVA_ETOOBIG, "context and files together are over %zu KB",
			     CONTEXT_MAX >> 10);
	return rv;
}

int task_check_from(const char *from, struct ava_error *err)
{
	char *end;

	if (from == NULL || from[0] < '0' || from[0] > '9')
		return 0; /* a name is checked by the daemon */
	if (strtol(from, &end, 10) >= 1 && *end == '\0')
		return 0;
	return err_set(err, AVA_EINVAL,
		       "--from needs the number of a model call, from 1, or the name of a "
		       "checkpoint");
}

int task_request(struct buf *out, const struct task_options *o, const struct buf *task,
		 const struct buf *context, const struct buf *schema, const char *cwd,
		 const char *request_id, struct ava_error *err)
{
	struct ava_spawn s = task_spawn(o);
	bool counts = o->from != NULL && o->from[0] >= '0' && o->from[0] <= '9';
	struct jw w;

	s.context = context->len > 0 ? context->data : NULL;
	s.output_schema = schema->len > 0 ? schema->data : NULL;
	s.request_id = request_id;
	if (o->resume == NULL) { /* a resumed run stays in its folder */
		s.task = task->data;
		s.cwd = cwd;
	}
	api_body(&w, out, BODY_MAX);
	if (o->order != NULL)
		jw_raw(&w, "order", o->order, strlen(o->order));
	spawn_put_str(&w, "resume", o->resume);
	if (o->resume != NULL)
		spawn_put_from(&w, counts ? strtol(o->from, NULL, 10) : 0, o->from);
	spawn_put(&w, &s);
	jw_end(&w);
	return buf_check(out) == 0 ? 0 : err_set(err, buf_check(out), "the request is too big");
}

int task_cwd(char **cwd, struct ava_error *err)
{
	*cwd = getcwd(NULL, 0); /* the kernel's path: no links in it */
	if (*cwd == NULL && errno == ENOENT)
		return err_set(err, AVA_EINVAL,
			       "the current folder does not exist any more: change to one that "
			       "does");
	if (*cwd == NULL)
		return err_sys(err, "the current folder");
	if ((*cwd)[0] == '/' && utf8_valid(*cwd, strlen(*cwd)))
		return 0;
	free(*cwd);
	*cwd = NULL;
	return err_set(err, AVA_EINVAL,
		       "the current folder cannot be named from here: its path is outside the "
		       "root folder or not UTF-8");
}

/* ---- a group: a file with the object of a run in each line, or with a list of them */

/* Copy a line that is an object as it stands. */
static int group_line(struct jw *w, const char *line, size_t len, unsigned number,
		      struct ava_error *err)
{
	struct ava_error why = {0};
	json_t *o = json_parse(line, len, &why);
	bool object = json_is_object(o);

	if (object)
		jw_raw(w, NULL, line, len);
	json_decref(o);
	if (object)
		return 0;
	return o != NULL ? err_set(err, AVA_EINVAL,
				   "line %u is no object: write {\"task\":\"…\"} in each", number)
			 : err_set(err, AVA_EINVAL,
				   "line %u%s; write one object in each line, or all in a list",
				   number, strchrnul(why.text, ':'));
}

static int group_lines(struct jw *w, const char *data, size_t len, struct ava_error *err)
{
	unsigned number = 0, runs = 0;
	int rv = 0;

	for (size_t at = 0; rv == 0 && at < len; number++) {
		const char *end = memchr(data + at, '\n', len - at);
		size_t n = end != NULL ? (size_t)(end - data) - at : len - at;

		if (!task_blank(data + at, n)) {
			rv = group_line(w, data + at, n, number + 1, err);
			runs++;
		}
		at += n + 1;
	}
	if (rv == 0 && runs == 0)
		rv = err_set(err, AVA_EINVAL,
			     "there is no task in it: write one object in each line, as "
			     "{\"task\":\"…\",\"role\":\"researcher\"}");
	return rv;
}

static int group_runs(struct jw *w, const char *data, size_t len, struct ava_error *err)
{
	size_t bom = jscan_begins(data, len, "\xef\xbb\xbf") ? 3 : 0;
	json_t *list;
	int rv = 0;

	data += bom;
	len -= bom;
	if (data[strspn(data, " \t\r\n")] == '[') {
		list = json_parse(data, len, err);
		rv = list != NULL ? 0 : AVA_EINVAL;
		jw_raw(w, "runs", data, len);
		json_decref(list);
		return rv;
	}
	jw_array(w, "runs");
	rv = group_lines(w, data, len, err);
	jw_end(w);
	return rv;
}

static int group_request(struct buf *out, const struct task_options *o, int fd, const char *cwd,
			 const char *request_id, struct ava_error *err)
{
	char *data = NULL;
	size_t len = 0;
	struct jw w;
	int rv = read_material(o->parallel, fd, GROUP_MAX, &data, &len, err);

	if (rv != 0)
		return err_wrap(err, rv == AVA_ENOENT ? AVA_EINVAL : rv, "--parallel");
	api_body(&w, out, 2 * GROUP_MAX);
	rv = group_runs(&w, data, len, err);
	free(data);
	if (rv != 0)
		return err_wrap(err, rv, "--parallel %.200s", o->parallel);
	spawn_put_group(&w,
			&(struct ava_spawn_group){.cwd = cwd,
						  .request_id = request_id,
						  .timeout_ms = o->spawn.timeout_ms,
						  .max_cost_microusd = o->spawn.max_cost_microusd,
						  .chain = o->chain,
						  .share = o->share});
	jw_end(&w);
	return buf_check(out) == 0 ? 0 : err_set(err, buf_check(out), "the request is too big");
}

int task_body(struct buf *out, const struct task_options *o, const char *text, int fd,
	      struct ava_error *err)
{
	struct session_id id = id_session();
	struct buf task, context, schema;
	char *cwd = NULL;
	int rv = o->no_files ? 0 : task_cwd(&cwd, err);

	if (rv == 0 && strcmp(text, "-") == 0 && task_file_is_stdin(o))
		rv = err_set(err, AVA_EINVAL,
			     "standard input is the task or a --file, not both: give one of them "
			     "in another way");
	buf_init(&task, TASK_MAX + 65536 * 2);
	buf_init(&context, CONTEXT_MAX + 65536);
	buf_init(&schema, SCHEMA_MAX);
	if (rv == 0 && o->parallel != NULL) {
		rv = group_request(out, o, fd, cwd, id.text, err);
	} else if (rv == 0) {
		rv = o->resume != NULL ? 0 : task_read(&task, text, fd, err);
		if (rv == 0)
			rv = task_context(&context, o, fd, err);
		if (rv == 0 && o->spawn.output_schema != NULL)
			rv = task_schema(&schema, o->spawn.output_schema, err);
		if (rv == 0)
			rv = task_request(out, o, &task, &context, &schema, cwd, id.text, err);
	}
	free(cwd);
	buf_fini(&task);
	buf_fini(&context);
	buf_fini(&schema);
	return rv;
}

/* ---- the answer */

/* SIGINT comes in here, also where the caller holds it off: then none is lost
 * between its handler and the read. */
static int wait_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	sigset_t open;

	sigprocmask(SIG_BLOCK, NULL, &open);
	sigdelset(&open, SIGINT);
	return fd >= 0 ? ppoll(&p, 1, NULL, &open) : 0; /* the read tells the error */
}

int task_answer(int fd, char out[4096], struct ava_error *err)
{
	size_t len = 0;

	for (;;) {
		char c;
		ssize_t n = wait_readable(fd);

		if (n >= 0)
			n = read(fd, &c, 1); /* take no byte beyond the line */

		if (n < 0)
			return errno == EINTR ? err_set(err, AVA_ECANCELED, "interrupted")
					      : err_sys(err, "read the answer");
		if (n == 0 && len == 0)
			return 0;
		if (n == 0 || c == '\n')
			break;
		/* A NUL would end the text and hide what stands behind it. */
		if (len < 4095)
			out[len++] = c != '\0' ? c : '\1';
	}
	out[len] = '\0';
	return 1;
}

int task_yes(void)
{
	char answer[4096];
	int rv;

	fflush(stderr);
	rv = task_answer(STDIN_FILENO, answer, NULL);
	if (rv <= 0)
		return rv < 0 ? rv : -1;
	return strcasecmp(answer, "yes") == 0 || strcasecmp(answer, "y") == 0;
}
