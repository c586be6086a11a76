/* The request of `ava run`: limits of task and context, encodings, the JSON,
 * reading one answer and not a byte more. Versions of two programs. */
#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/api.h"
#include "cli/task.h"
#include "codec/json.h"

static struct ava_error err;
static char dir[256];

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	return 0;
}

static int teardown(void **state)
{
	unit_rmdir(dir);
	return 0;
}

static const char *file(const char *name, const void *data, size_t len)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unit_write(path, data, len);
	return path;
}

/* task_read of "-" over a file with these bytes; *len of the task. */
static int read_task(const void *data, size_t len, size_t *task_len)
{
	int fd = open(file("stdin", data, len), O_RDONLY | O_CLOEXEC), rv;
	TEST_BUF(b, TASK_MAX + 131072);

	rv = task_read(&b, "-", fd, &err);
	*task_len = b.len;
	close(fd);
	return rv;
}

TEST_WITH(task, setup, teardown)
{
	char *big = malloc(1 << 20);
	size_t len;

	memset(big, 'x', 1 << 20);
	assert_int_equal(read_task("do it\n", 6, &len), 0);
	assert_int_equal(len, 6);
	assert_int_equal(read_task(big, TASK_MAX, &len), 0);
	assert_int_equal(len, TASK_MAX);
	assert_int_equal(read_task(big, TASK_MAX + 1, &len), AVA_ETOOBIG);
	assert_string_equal(err.text, "the task is over 256 KB: keep it short and hand the "
				      "material over with --file");
	assert_int_equal(read_task(big, 1 << 20, &len), AVA_ETOOBIG);
	free(big);

	assert_int_equal(read_task("", 0, &len), AVA_EINVAL);
	assert_string_equal(err.text, "the task is empty: say what is to be done");
	assert_int_equal(read_task(" \t\r\n", 4, &len), AVA_EINVAL);
	assert_int_equal(read_task("a\0b", 3, &len), AVA_EINVAL);
	assert_string_equal(err.text, "the task holds NUL bytes: only text can be given");
	assert_int_equal(read_task("caf\xe9", 4, &len), AVA_EINVAL);
	assert_string_equal(err.text, "the task is not valid UTF-8: convert it first, for example "
				      "with iconv");
}

TEST(task_argument)
{
	char *big = malloc(TASK_MAX + 2);
	TEST_BUF(b, TASK_MAX + 131072);

	assert_int_equal(task_read(&b, "find it", -1, &err), 0);
	assert_string_equal(b.data, "find it");
	buf_reset(&b);
	assert_int_equal(task_read(&b, "", -1, &err), AVA_EINVAL);
	memset(big, 'x', TASK_MAX + 1);
	big[TASK_MAX + 1] = '\0';
	assert_int_equal(task_read(&b, big, -1, &err), AVA_ETOOBIG);
	free(big);
}

static int context(const struct task_options *o, struct buf *b)
{
	buf_init(b, CONTEXT_MAX + 65536);
	return task_context(b, o, -1, &err);
}

TEST_WITH(context, setup, teardown)
{
	struct task_options o = {.spawn.context = "know this"};
	char want[1024], first[512], *big = malloc(CONTEXT_MAX + 1);
	struct buf b;

	snprintf(first, sizeof(first), "%s", file("a.txt", "one\n", 4));
	o.files.items[0] = first;
	o.files.n = 1;
	assert_int_equal(context(&o, &b), 0);
	snprintf(want, sizeof(want), "know this\n--- file %s ---\none\n", first);
	assert_string_equal(b.data, want);
	buf_fini(&b);

	o.files.items[0] = "no/such/file";
	assert_int_equal(context(&o, &b), AVA_EINVAL);
	assert_string_equal(err.text, "--file: open no/such/file: No such file or directory");
	buf_fini(&b);

	o.files.items[0] = file("bad", "\xff\xfe", 2);
	assert_int_equal(context(&o, &b), AVA_EINVAL);
	assert_non_null(strstr(err.text, "is not valid UTF-8"));
	buf_fini(&b);

	memset(big, 'y', CONTEXT_MAX + 1);
	o.files.items[0] = file("big", big, CONTEXT_MAX + 1);
	assert_int_equal(context(&o, &b), AVA_ETOOBIG);
	assert_non_null(strstr(err.text, "context and files together are over 1024 KB"));
	buf_fini(&b);
	o.spawn.context = NULL; /* fits, but not with the line that names it */
	o.files.items[0] = file("big", big, CONTEXT_MAX);
	assert_int_equal(context(&o, &b), AVA_ETOOBIG);
	buf_fini(&b);

	o.files.items[0] = dir;
	assert_int_not_equal(context(&o, &b), 0);
	assert_non_null(strstr(err.text, "not a regular file"));
	buf_fini(&b);
	free(big);
}

static char *request(const struct task_options *o, const char *task_text)
{
	struct buf out;
	TEST_BUF(schema, 1 << 20);
	TEST_BUF(ctx, 1 << 20);
	TEST_BUF(task, 1 << 20);
	char *text;

	buf_adds(&task, task_text);
	assert_int_equal(task_request(&out, o, &task, &ctx, &schema, "/src", "id-1", &err), 0);
	text = buf_take(&out, NULL);
	return text;
}

TEST(request)
{
	struct task_options o = {0};
	char *text = request(&o, "say \"hi\"\n");

	assert_string_equal(text, "{\"task\":\"say \\\"hi\\\"\\n\",\"cwd\":\"/src\",\"request_id\":"
				  "\"id-1\"}");
	free(text);
	o = (struct task_options){.spawn = {.role = "researcher",
					    .preset = "quick",
					    .model = "offline",
					    .timeout_ms = 1500,
					    .max_cost_microusd = AVA_FREE_ONLY,
					    .max_tokens = 1000,
					    .max_iterations = 3,
					    .extended_thinking = 1},
				  .grants = {.items = {"rw"}, .n = 1}};
	text = request(&o, "t");
	assert_string_equal(
		text, "{\"task\":\"t\",\"role\":\"researcher\",\"preset\":\"quick\",\"model\":"
		      "\"offline\",\"timeout\":1.5,\"max_cost_cents\":0,\"max_tokens\":1000,"
		      "\"max_iterations\":3,\"extended_thinking\":true,\"grants\":[\"rw\"],\"cwd\":"
		      "\"/src\",\"request_id\":\"id-1\"}");
	free(text);
}

TEST_WITH(cwd, setup, teardown)
{
	char here[4096], sub[512], *cwd = NULL;

	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(sub, sizeof(sub), "%s/gone", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(chdir(sub), 0);
	assert_int_equal(task_cwd(&cwd, &err), 0);
	assert_string_equal(cwd, sub);
	free(cwd);
	assert_int_equal(rmdir(sub), 0);
	assert_int_equal(task_cwd(&cwd, &err), AVA_EINVAL);
	assert_string_equal(err.text, "the current folder does not exist any more: change to one "
				      "that does");
	snprintf(sub, sizeof(sub), "%s/\xff", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(chdir(sub), 0);
	assert_int_equal(task_cwd(&cwd, &err), AVA_EINVAL);
	assert_int_equal(chdir(here), 0);
}

TEST(answer)
{
	char answer[4096], *big = malloc(10000);
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], "yes\n\nno", 7), 7);
	assert_int_equal(task_answer(fds[0], answer, &err), 1);
	assert_string_equal(answer, "yes");
	assert_int_equal(task_answer(fds[0], answer, &err), 1); /* an empty line is an answer */
	assert_string_equal(answer, "");
	memset(big, 'a', 10000);
	big[9999] = '\n';
	assert_int_equal(write(fds[1], big, 10000), 10000);
	assert_int_equal(task_answer(fds[0], answer, &err), 1);
	assert_int_equal(strlen(answer), sizeof(answer) - 1); /* the rest of the line is gone */
	assert_int_equal(write(fds[1], "last", 4), 4);
	close(fds[1]);
	assert_int_equal(task_answer(fds[0], answer, &err), 1);
	assert_string_equal(answer, "last");
	assert_int_equal(task_answer(fds[0], answer, &err), 0);
	close(fds[0]);
	free(big);
	assert_int_equal(task_answer(-1, answer, &err), AVA_EIO);
}

TEST(versions)
{
	assert_int_equal(api_compare_versions("0.1.0", "0.1.0"), 0);
	assert_true(api_compare_versions("0.1.0", "0.2.0") < 0);
	assert_true(api_compare_versions("0.10.0", "0.2.0") > 0);
	assert_true(api_compare_versions("1", "0.9.9") > 0);
	assert_int_equal(api_compare_versions("1", "1.0.0"), 0);
	assert_true(api_compare_versions("", "0.0.1") < 0);
}
