/* ava export S-id: a run as one self-contained JSON object on stdout: its
 * catalog row, events, messages, result and the text of what tools left. The
 * bytes are what stands in the files, which were redacted when they were
 * written. Needs no daemon; only whole lines are taken. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "cli/cli.h"
#include "cli/root.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "codec/utf8.h"
#include "journal/read.h"

#define FILE_MAX      ((size_t)512 << 20)
#define OUT_MAX       ((size_t)2 << 30)
#define ARTIFACTS_MAX 1000
#define PARTS_MAX     99
#define SMALL_FILE    (1u << 20)

struct export
{
	int rootfd;
	const char *id;
	struct buf out;
	struct jw w;
};

static bool is_object(const char *s, size_t len)
{
	json_t *v = json_parse(s, len, NULL);
	bool yes = json_is_object(v);

	json_decref(v);
	return yes;
}

/* A line that is an object as it stands, any other as a string. */
static void add_line(struct export *e, const char *key, const char *s, size_t len)
{
	if (is_object(s, len))
		jw_raw(&e->w, key, s, len);
	else
		jw_strn(&e->w, key, s, len);
}

/* The lines of a file and of the parts in which a recovery went on; `with`
 * (NULL: all) must stand in them. 0 also when there is no such file. */
static int add_lines(struct export *e, const char *base, const char *with, uint64_t *n,
		     struct ava_error *err)
{
	char path[96];
	const char *line;
	int rv = 0;

	for (unsigned part = 1; rv == 0 && part <= PARTS_MAX; part++) {
		char *data = NULL;
		size_t len = 0, at = 0, line_len;

		if (part == 1)
			snprintf(path, sizeof(path), "%s.jsonl", base);
		else
			snprintf(path, sizeof(path), "%s.%u.jsonl", base, part);
		rv = sys_read_file(e->rootfd, path, FILE_MAX, &data, &len, err);
		while (rv == 0 && jsonl_next(data, len, &at, &line, &line_len) == 1) {
			if (with != NULL && memmem(line, line_len, with, strlen(with)) == NULL)
				continue;
			add_line(e, NULL, line, line_len);
			(*n)++;
		}
		free(data);
	}
	return rv == AVA_ENOENT ? 0 : rv;
}

static int add_result(struct export *e, struct ava_error *err)
{
	char path[64], *data = NULL;
	size_t len = 0;
	int rv;

	snprintf(path, sizeof(path), "runs/%s/result.json", e->id);
	rv = sys_read_file(e->rootfd, path, FILE_MAX, &data, &len, err);
	if (rv == AVA_ENOENT) {
		jw_null(&e->w, "result");
		return 0;
	}
	while (rv == 0 && len > 0 && data[len - 1] == '\n')
		len--;
	if (rv == 0)
		add_line(e, "result", data, len);
	free(data);
	return rv;
}

/* Text as it is; of anything else only size and hash. */
static int add_artifact(struct export *e, const char *name, struct ava_error *err)
{
	char path[400], hash[HASH_HEX_LEN + 1], *data = NULL;
	size_t len = 0;
	int rv;

	if (snprintf(path, sizeof(path), "runs/%s/artifacts/%s", e->id, name) >= (int)sizeof(path))
		return 0;
	rv = sys_read_file(e->rootfd, path, FILE_MAX, &data, &len, err);
	if (rv != 0) /* no file, or gone */
		return rv == AVA_ENOMEM || rv == AVA_ETOOBIG ? rv : 0;
	hash_sha256_hex(data, len, hash);
	jw_object(&e->w, NULL);
	jw_str(&e->w, "name", name);
	jw_int(&e->w, "bytes", (int64_t)len);
	jw_str(&e->w, "sha256", hash);
	if (utf8_valid(data, len) && memchr(data, '\0', len) == NULL)
		jw_strn(&e->w, "text", data, len);
	jw_end(&e->w);
	free(data);
	return 0;
}

static int add_artifacts(struct export *e, struct ava_error *err)
{
	struct dirent **names = NULL;
	char path[64];
	int fd, n = 0, rv = 0;

	snprintf(path, sizeof(path), "runs/%s/artifacts", e->id);
	fd = openat(e->rootfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		n = scandirat(fd, ".", &names, NULL, alphasort);
	jw_array(&e->w, "artifacts");
	for (int i = 0; i < n; i++) {
		if (rv == 0 && names[i]->d_name[0] != '.' && i < ARTIFACTS_MAX)
			rv = add_artifact(e, names[i]->d_name, err);
		free(names[i]);
	}
	jw_end(&e->w);
	free(names);
	if (fd >= 0)
		close(fd);
	return rv;
}

static int write_export(struct export *e, struct ava_error *err)
{
	char base[64], with[48];
	uint64_t rows = 0, events = 0, messages = 0;
	int rv;

	jw_init(&e->w, &e->out);
	jw_object(&e->w, NULL);
	jw_str(&e->w, "format", "ava export 1");
	jw_str(&e->w, "id", e->id);
	jw_array(&e->w, "catalog");
	snprintf(with, sizeof(with), "\"id\":\"%s\"", e->id);
	rv = add_lines(e, "catalog", with, &rows, err);
	jw_end(&e->w);
	jw_array(&e->w, "events");
	snprintf(base, sizeof(base), "logs/subagents/%s", e->id);
	if (rv == 0)
		rv = add_lines(e, base, NULL, &events, err);
	jw_end(&e->w);
	jw_array(&e->w, "messages");
	snprintf(base, sizeof(base), "runs/%s/messages", e->id);
	if (rv == 0)
		rv = add_lines(e, base, NULL, &messages, err);
	jw_end(&e->w);
	if (rv == 0)
		rv = add_result(e, err);
	if (rv == 0)
		rv = add_artifacts(e, err);
	jw_end(&e->w);
	if (rv == 0 && rows + events + messages == 0)
		rv = err_set(err, AVA_ENOENT, "there is no run %s", e->id);
	if (rv == 0 && buf_check(&e->out) != 0)
		rv = err_set(err, buf_check(&e->out), "%s is too large to be exported", e->id);
	return rv;
}

static int export_run(int argc, char **argv)
{
	static struct export e;
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	int rv;

	(void)argc;
	e = (struct export){.rootfd = -1, .id = argv[0]};
	if (cli_check_run_id(e.id) != CLI_DONE)
		return CLI_USAGE;
	buf_init(&e.out, OUT_MAX);
	rv = root_prepare(root, &err);
	if (rv == 0) {
		e.rootfd = read_open_root(root, &err);
		rv = e.rootfd < 0 ? e.rootfd : write_export(&e, &err);
	}
	if (rv == 0) {
		term_bytes(stdout, e.out.data, e.out.len);
		putchar('\n');
	}
	buf_fini(&e.out);
	if (e.rootfd >= 0)
		close(e.rootfd);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

const struct command cmd_export = {
	.name = "export",
	.args = "S-id",
	.min_args = 1,
	.max_args = 1,
	.summary = "print a run as one JSON object, to be sent elsewhere",
	.detail = "Its catalog rows, events, messages, result and the text of its artifacts. Keys "
		  "and\n"
		  "known secrets were taken out when they were written; what the run read is in "
		  "it.\n"
		  "`jq -c .events[] FILE` gives the lines of its log, for `ava logs --file`.\n",
	.run = export_run,
};
