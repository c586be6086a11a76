/* The file of a conversation as it is shown; see session_file.h.
 *
 * Other programs write into it, too: what they wrote is read as they read it, a line that is no
 * entry is passed over and counted, and a header that was cut off says what is left of it. */
#include "ava/session_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ava/talk.h"
#include "ava/verbs.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "subagent/session_entry.h"

#define HEAD_MAX    16384 /* bytes of a file read for its header and title */
#define TITLE_CHARS 80

/* ---- the first and last lines */

static void take_header(struct session *s, const json_t *line)
{
	const char *cwd = json_get_str(line, "cwd"), *user = json_get_str(line, "userId");
	const char *type = json_get_str(line, "type"), *origin = json_get_str(line, "origin");

	if (!type || strcmp(type, "session") != 0)
		return;
	if (!s->cwd)
		s->cwd = strdup(cwd ? cwd : "");
	if (!s->user)
		s->user = strdup(user ? user : "");
	if (!s->origin) /* a file of pi has none */
		s->origin = strdup(origin ? origin : "");
}

/* The members that are left of a header whose end is gone. */
static json_t *header_cut(const char *line, size_t len)
{
	static const char *const members[] = {"type", "cwd", "userId", "origin"};
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct slice v = jscan_first(line, len, members[i]);

		json_object_set_new(o, members[i], json_read_others(v.s, v.len, NULL));
	}
	return o;
}

void session_file_title(struct session *s, const char *text)
{
	free(s->title);
	s->title = strndup(text, utf8_prefix(text, strlen(text), TITLE_CHARS));
	for (char *at = s->title; at && *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
}

static void take_title(struct session *s, const json_t *line)
{
	const json_t *m = json_object_get(line, "message");
	const char *role = json_get_str(m, "role"), *text;
	const json_t *content = json_object_get(m, "content");

	if (s->title || !role || strcmp(role, "user") != 0)
		return;
	text = json_is_string(content) ? json_string_value(content)
				       : json_get_str(json_array_get(content, 0), "text");
	if (text)
		session_file_title(s, text);
}

static void session_file_read_lines(struct session *s, int fd, off_t from, size_t len, char *data)
{
	char id[sizeof(((struct model *)0)->id)];
	const char *line;
	size_t at = 0, n;

	if (sys_read_all(fd, data, len, from) != 0)
		return;
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_read_others(line, n, NULL);

		if (from == 0) {
			take_header(s, o ? o : (o = header_cut(line, n)));
			take_title(s, o);
		}
		/* the last answer's model, or one chosen later; pi's names are skipped */
		if (session_model_read(o, id, sizeof(id))) {
			free(s->model);
			s->model = strdup(id);
		}
		json_decref(o);
	}
}

void session_file_show(struct session *s)
{
	char **texts[] = {&s->cwd, &s->title, &s->user, &s->origin, &s->model}, *data;
	struct stat st;
	int fd;

	if (s->cwd && (s->title || !s->there))
		return;
	fd = s->there ? sys->openat(s->core->root_fd, s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
		      : -1;
	data = malloc(HEAD_MAX);
	if (fd >= 0 && data && sys->fstat(fd, &st) == 0) {
		session_file_read_lines(s, fd, 0, MIN((size_t)st.st_size, HEAD_MAX), data);
		if (st.st_size > HEAD_MAX)
			session_file_read_lines(s, fd, st.st_size - HEAD_MAX, HEAD_MAX, data);
	}
	if (fd >= 0)
		sys->close(fd);
	free(data);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (!*texts[i])
			*texts[i] = strdup("");
}

/* ---- all entries */

/* Writes an entry as it stands, or as it could be read; false: no entry. */
static bool session_file_entry(struct jw *w, const char *line, size_t len)
{
	json_t *plain = json_read_plain(line, len),
	       *o = plain ? plain : json_read_others(line, len, NULL);
	bool good = json_is_object(o);

	if (good)
		jw_raw(w, NULL, line, plain ? len : 0);
	if (good && !plain)
		(void)json_dump(w->out, o);
	json_decref(o);
	return good;
}

int session_file_entries(struct verb_work *w, struct ava_error *err)
{
	const char *path = w->own, *line;
	char *data = NULL, first[600];
	size_t len = 0, at = 0, n, number = 0;
	int64_t unreadable = 0;
	int more = 1, rv = path[0] ? sys_read_file(w->job.core->root_fd, path, TALK_FILE_MAX, &data,
						   &len, err)
				   : 0;

	jw_object(&w->answer.w, NULL);
	jw_array(&w->answer.w, "entries");
	while (rv == 0 && more == 1 && (more = jsonl_next(data, len, &at, &line, &n)) != 0) {
		number++;
		while (n > 0 && strchr(" \t\r", line[n - 1]) && line[n - 1])
			n--;
		if (n > 0 && !session_file_entry(&w->answer.w, line, n) && unreadable++ == 0)
			snprintf(first, sizeof(first), "%s, line %zu", path, number);
	}
	jw_end(&w->answer.w);
	if (unreadable > 0) {
		jw_int(&w->answer.w, "unreadable", unreadable);
		jw_str(&w->answer.w, "unreadable_first", first);
	}
	free(data);
	return rv;
}
