/* What a request for a run says, before anything is made of it: texts that are
 * too long or no text, a working folder that is not there, keys in what names
 * things. Each is a sentence that says what to do. */
#include "subagent/spec.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/redact.h"
#include "codec/utf8.h"

static int check_text(const char *what, const char *text, size_t max, struct ava_error *err)
{
	size_t len = text ? strlen(text) : 0;

	if (len > max)
		return err_set(
			err, AVA_ETOOBIG,
			"the %s is %zu bytes long, %zu at the most: put the rest into a file "
			"the run can read",
			what, len, max);
	if (len && !utf8_valid(text, len))
		return err_set(err, AVA_EINVAL, "the %s is not valid UTF-8", what);
	return 0;
}

static int check_cwd(const char *cwd, struct ava_error *err)
{
	struct stat st;

	if (!cwd || !*cwd)
		return 0;
	if (cwd[0] != '/')
		return err_set(err, AVA_EINVAL, "the working folder %s must be an absolute path",
			       cwd);
	if (stat(cwd, &st) != 0)
		return err_set(err, AVA_ENOENT,
			       "the working folder %s cannot be opened (%s): start from a folder "
			       "that exists",
			       cwd, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, AVA_EINVAL, "the working folder %s is not a folder", cwd);
	return 0;
}

/* What names things cannot be changed: with a key in it it is refused. */
static int check_names(const struct op_spawn *s, const struct redact *redact, struct ava_error *err)
{
	const struct {
		const char *what, *text;
	} names[] = {
		{"role", s->role},
		{"model", s->model},
		{"working folder", s->cwd},
		{"session id", s->session_id},
		{"request id", s->request_id},
		{"user id", s->user_id},
		{"origin", s->origin},
	};

	for (size_t i = 0; redact && i < ARRAY_LEN(names); i++) {
		const char *text = names[i].text;

		struct buf clean;
		int n;

		buf_init(&clean, 1u << 20);
		n = text ? redact_text(redact, &clean, text, strlen(text)) : 0;
		buf_fini(&clean);
		if (n != 0)
			return err_set(err, n < 0 ? n : AVA_EDENIED,
				       "the %s holds what looks like a key or password: leave it "
				       "out",
				       names[i].what);
	}
	return 0;
}

int spec_check(const struct op_spawn *s, const struct redact *redact, struct ava_error *err)
{
	int rv;

	if (!s->task || s->task[strspn(s->task, " \t\r\n")] == 0)
		return err_set(err, AVA_EINVAL, "the task is empty: say what the run shall do");
	if (s->resume_call < 0 || s->resume_call > INT32_MAX ||
	    ((s->resume_call > 0 || s->resume_at) && (!s->resume || !*s->resume)))
		return err_set(err, AVA_EINVAL,
			       "from must be the number of a model call, from 1, or a checkpoint "
			       "of the run that is resumed");
	if (s->on_limit && strcmp(s->on_limit, "ask") != 0 && strcmp(s->on_limit, "stop") != 0)
		return err_set(err, AVA_EINVAL, "on_limit is \"%.40s\"; it must be stop or ask",
			       s->on_limit);
	rv = check_text("task", s->task, SPEC_TASK_MAX, err);
	if (rv == 0)
		rv = check_text("context", s->context, SPEC_CONTEXT_MAX, err);
	if (rv == 0)
		rv = check_text("session id", s->session_id, 200, err);
	if (rv == 0)
		rv = check_text("request id", s->request_id, 200, err);
	if (rv == 0)
		rv = check_text("working folder", s->cwd, 4095, err);
	if (rv == 0)
		rv = check_names(s, redact, err);
	return rv == 0 ? check_cwd(s->cwd, err) : rv;
}
