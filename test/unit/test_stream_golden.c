/* Streams of all dialects from test/golden/streams: each .sse gives the .json
 * beside it, in one piece, in pieces of each size, parted in two anywhere and in
 * random pieces; cut after each byte it is either that same turn or none.
 * What came goes into the next request as it came. UPDATE_GOLDEN=1 writes the
 * .json files anew; read the difference before you keep it. */
#include "stream_rig.h"

#include <dirent.h>
#include <stdio.h>

#include "provider/model.h"

#define SIZES 64u   /* of pieces; all of them */
#define LONG  2000u /* bytes; the events of a longer stream are parted more sparsely */

/* ---- the golden files */

static void compare(const char *path, const struct buf *got)
{
	char name[256], path_of[1024];
	size_t len;
	char *want;

	snprintf(name, sizeof(name), "%.*s.json", (int)(strlen(path) - 4), path);
	if (getenv("UPDATE_GOLDEN") != NULL) {
		FILE *f;

		snprintf(path_of, sizeof(path_of), "%s/%s", getenv("SRCDIR"), name);
		f = fopen(path_of, "we");
		assert_non_null(f);
		fprintf(f, "%s\n", got->data);
		fclose(f);
	}
	want = unit_read_src(name, &len);
	assert_true(len > 0);
	want[len - 1] = 0; /* its newline */
	assert_string_equal(got->data, want);
	free(want);
}

/* Never a half turn, never a whole one lost: a cut stream is a turn exactly
 * from the byte on that completes its end mark. */
static void cut_everywhere(const struct dialect *d, const char *data, size_t len,
			   enum reply_class whole, const char *want)
{
	size_t first = len + 1;
	TEST_BUF(got, 8u << 20);

	for (size_t k = 0; k <= len; k++) {
		enum reply_class cls = run(d, data, k, len + 1, 0, &got);

		if (cls == REPLY_OK && first > len)
			first = k;
		assert_true((cls == REPLY_OK) == (k >= first));
		if (cls == REPLY_OK)
			assert_string_equal(got.data, want);
		else /* a fault that came, or nothing but the cut */
			assert_true(cls == REPLY_TRUNCATED || cls == whole);
		assert_true(cls == REPLY_OK || strstr(got.data, "\"estimated\":true") != NULL ||
			    cls == whole);
	}
	assert_true((whole == REPLY_OK) == (first <= len));
	if (whole == REPLY_OK && d == &dialect_openai) {
		const char *mark = memmem(data, len, "[DONE]", 6);

		assert_non_null(mark);
		assert_int_equal(first, (size_t)(mark - data) + 6);
	} else if (whole == REPLY_OK && d == &dialect_responses) {
		static const char completed[] = "{\"type\":\"response.completed\"",
				  incomplete[] = "{\"type\":\"response.incomplete\"";
		const char *mark = memmem(data, len, completed, sizeof(completed) - 1);

		if (mark == NULL)
			mark = memmem(data, len, incomplete, sizeof(incomplete) - 1);
		assert_non_null(mark);
		mark = memmem(mark, len - (size_t)(mark - data), "\n\n", 2);
		assert_int_equal(first, (size_t)(mark - data));
	} else if (whole == REPLY_OK) {
		const char *mark = memmem(data, len, "{\"type\":\"message_stop\"}", 23);

		assert_non_null(mark);
		assert_int_equal(first, (size_t)(mark - data) + 23);
	}
}

static void golden_file(const char *name)
{
	const struct dialect *d = dialect_of(name);
	enum reply_class cls;
	char path[256], *data;
	TEST_BUF(got, 8u << 20);
	TEST_BUF(want, 8u << 20);
	size_t len;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	print_message("%s\n", name);
	data = unit_read_src(path, &len);
	assert_true(len > 0);
	cls = run(d, data, len, len, 0, &want);
	compare(path, &want);
	/* Larger sizes part events no further than two pieces do. */
	for (size_t n = 1; n <= SIZES; n++) {
		assert_int_equal(run(d, data, len, n, 0, &got), cls);
		assert_string_equal(got.data, want.data);
	}
	for (size_t at = 1; at<len; at += len> LONG ? 4 : 1) {
		assert_int_equal(run_parted(d, data, len, at, &got), cls);
		assert_string_equal(got.data, want.data);
	}
	for (unsigned seed = 1; seed <= 50; seed++) {
		assert_int_equal(run(d, data, len, 0, seed, &got), cls);
		assert_string_equal(got.data, want.data);
	}
	cut_everywhere(d, data, len, cls, want.data);
	free(data);
}

TEST(golden)
{
	char folder[512];
	struct dirent *e;
	unsigned n = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/" FOLDER, getenv("SRCDIR"));
	dir = opendir(folder);
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		size_t len = strlen(e->d_name);

		if (len < 5 || strcmp(e->d_name + len - 4, ".sse") != 0)
			continue;
		golden_file(e->d_name);
		n++;
	}
	closedir(dir);
	assert_true(n >= 91);
}

/* ---- what came goes back as it came */

/* The request after the stream: task, reply, results. */
static void request_after(const char *name, struct buf *body)
{
	const struct dialect *d = dialect_of(name);
	struct stream *s = stream_open(d->stream, &model, "7f3a2b_3");
	struct reply_error e;
	struct turn *t;
	char path[128];
	size_t len;
	char *data;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	data = unit_read_src(path, &len);
	feed_piece(d, s, data, len);
	assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OK);
	buf_reset(body);
	assert_int_equal(d->encode_user(body, "task", 4), 0);
	buf_addc(body, ',');
	buf_add(body, t->wire, t->wire_len);
	for (unsigned i = 0; i < t->ncalls; i++)
		t->calls[i].output = "done";
	buf_addc(body, ',');
	assert_int_equal(d->encode_results(body, t, &(const char *){"go on"}, 1), 0);
	turn_free(t);
	stream_free(s);
	free(data);
}

TEST(kept_bytes)
{
	static const struct {
		const char *name, *bytes;
	} kept[] = {
		{"anthropic_thinking.sse",
		 "{\"type\":\"thinking\",\"thinking\":\"First I look \xe2\x80\x94 then I "
		 "\\\"read\\\".\\n\",\"signature\":\"c2lnLXR3bw==\"}"},
		{"anthropic_thinking.sse",
		 "{\"type\":\"redacted_thinking\",\"data\":\"b3BhcXVlIGJ5dGVz/+==\"}"},
		{"anthropic_thinking.sse",
		 "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"b21pdHRlZA==\"}"},
		{"anthropic_thinking.sse", "{ \"type\" : \"future_kind\", \"z\":1.50, "
					   "\"a\":[1,2,{\"k\":\"\\u00e9\\/\"}] }"},
		{"anthropic_interleaved.sse",
		 "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"srvtoolu_2\",\"content\":{"
		 "\"type\":\"web_search_tool_result_error\",\"error_code\":\"max_uses_exceeded\"}"
		 "}"},
		{"openrouter_reasoning.sse",
		 "{\"type\":\"reasoning.encrypted\",\"data\":\"ZW5j\",\"id\":\"rs_1\",\"format\":"
		 "\"openai-responses-v1\",\"index\":1}"},
		{"openrouter_signatures.sse",
		 "{\"type\":\"reasoning.text\",\"text\":\"One.\",\"signature\":\"c2ln\",\"format\":"
		 "\"anthropic-claude-v1\",\"index\":0}"},
		{"responses_tools.sse",
		 "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"gAAAAABo/x+y==\","
		 "\"summary\":[{\"type\":\"summary_text\",\"text\":\"**Looking** at it\"},{"
		 "\"type\":\"summary_text\",\"text\":\"Then reading\"}]}"},
		{"responses_tools.sse", "\"phase\":\"commentary\""},
		{"local_deepseek.sse", "\"reasoning_content\":\"The person asks.\""},
	};
	TEST_BUF(body, 1u << 20);

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		request_after(kept[i].name, &body);
		if (strstr(body.data, kept[i].bytes) == NULL)
			fail_msg("%s: %s", kept[i].bytes, body.data);
	}
}

/* A mark is in the request alone, and the request after it extends what this
 * one held without it. */
TEST(marks_leave_lines)
{
	static const char *const names[] = {"anthropic_interleaved.sse",
					    "openrouter_signatures.sse"};
	TEST_BUF(next, 1u << 20);
	TEST_BUF(body, 1u << 20);

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct dialect *d = dialect_of(names[i]);
		struct model m = {.provider = provider_find("openrouter", 10),
				  .wire_name = "anthropic/claude-x"};
		size_t plain;

		request_after(names[i], &body);
		buf_reset(&next);
		buf_add(&next, body.data, body.len);
		plain = body.len;
		assert_int_equal(d->mark_cache(&body, 0, &m), 0);
		assert_true(body.len > plain);
		assert_non_null(strstr(body.data, "\"cache_control\":{\"type\":\"ephemeral\"}"));
		buf_adds(&next, ",");
		assert_int_equal(d->encode_user(&next, "more", 4), 0);
		assert_int_equal(d->mark_cache(&next, 0, &m), 0);
		/* All but the last line of `body` stand in `next` as they were. */
		plain = 0;
		while (body.data[plain] == next.data[plain])
			plain++;
		assert_null(memmem(next.data, plain, "cache_control", 13));
		assert_non_null(memmem(next.data, plain, "\"assistant\"", 11));
	}
}
