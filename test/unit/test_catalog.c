/* Rows of the catalog: the example of doc/JOURNAL.md and golden rows byte for
 * byte, there and back, and lines that are no rows. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ava.h>

#include "base/buf.h"
#include "codec/jscan.h"
#include "event/event.h"
#include "journal/catalog.h"

static const struct catalog_row rows[] = {
	{
		.kind = CATALOG_SPAWN,
		.lsn = 12,
		.id = "S-7f3a2b",
		.trace_id = "brave-otter",
		.session_id = "5c3e1a52-6b0f-4d7e-9a51-0f2b7c9d1e33",
		.user_id = "ben",
		.role = "researcher",
		.model = "offline",
		.status = AVA_STARTING,
		.request_id = "r-1",
		.origin = "cli",
		.started_ms = -1,
		.ended_ms = -1,
	},
	{
		.kind = CATALOG_END,
		.lsn = 90417,
		.spawn_lsn = 12,
		.id = "S-7f3a2b",
		.trace_id = "brave-otter",
		.session_id = "5c3e1a52-6b0f-4d7e-9a51-0f2b7c9d1e33",
		.user_id = "ben",
		.role = "researcher",
		.model = "offline",
		.status = AVA_SUCCESS,
		.request_id = "r-1",
		.origin = "cli",
		.started_ms = 1795248000123,
		.ended_ms = 1795248180456,
		.bytes = 18231,
		.types = 1u << EVENT_SubagentSpawn | 1u << EVENT_SubagentComplete |
			 1u << EVENT_InferStart | 1u << EVENT_InferEnd | 1u << EVENT_ToolCall |
			 1u << EVENT_ToolResult | 1u << EVENT_CostUpdate | 1u << EVENT_Limit,
		.totals = {.input_tokens = 11200,
			   .output_tokens = 800,
			   .cost_microusd = 23500,
			   .duration_ms = 180333,
			   .calls = 6,
			   .failed_calls = 1},
		.shown = {.task = "compare the prices",
			  .cwd = "/work",
			  .stop_reason = "submitted",
			  .iterations = 6,
			  .limit_ms = 600000,
			  .limit_microusd = 500000,
			  .limit_tokens = 100000,
			  .limit_iterations = 20},
	},
	{
		/* what must be escaped, what is not there, numbers at their ends */
		.kind = CATALOG_END,
		.lsn = INT64_MAX,
		.id = "S-ffffff",
		.trace_id = NULL,
		.session_id = "",
		.user_id = "quote\" back\\ line\n\xc3\xa9",
		.role = "web_crawler",
		.model = "anthropic/claude",
		.status = AVA_COST_EXCEEDED,
		.started_ms = 0,
		.ended_ms = 1,
		.bytes = INT64_MAX,
		.types = 0x7fffffff,
		.totals = {.cost_microusd = 1, .uncosted_calls = 3, .estimated_calls = 2},
		.shown = {.task = "", .limit_ms = 1, .limit_microusd = -1},
	},
	{
		/* a run of a group */
		.kind = CATALOG_SPAWN,
		.lsn = 90418,
		.id = "S-00c0de",
		.trace_id = "calm-crane",
		.session_id = "5c3e1a52-6b0f-4d7e-9a51-0f2b7c9d1e33",
		.user_id = "ben",
		.role = "researcher",
		.model = "offline",
		.status = AVA_STARTING,
		.request_id = "r-2",
		.origin = "cli",
		.group_id = "G-1a2b3c",
		.group_index = 2,
		.tags = "ops/nightly v1.2",
		.started_ms = -1,
		.ended_ms = -1,
	},
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static void same_text(const char *want, const char *got)
{
	assert_string_equal(want != NULL ? want : "", got);
}

static void same_row(const struct catalog_row *want, const struct catalog_row *got)
{
	assert_int_equal(want->kind, got->kind);
	assert_int_equal(want->status, got->status);
	assert_int_equal(want->lsn, got->lsn);
	assert_int_equal(want->spawn_lsn, got->spawn_lsn);
	same_text(want->id, got->id);
	same_text(want->trace_id, got->trace_id);
	same_text(want->session_id, got->session_id);
	same_text(want->user_id, got->user_id);
	same_text(want->role, got->role);
	same_text(want->model, got->model);
	same_text(want->request_id, got->request_id);
	same_text(want->origin, got->origin);
	same_text(want->group_id, got->group_id);
	assert_int_equal(want->group_index, got->group_index);
	same_text(want->tags, got->tags);
	assert_int_equal(want->started_ms, got->started_ms);
	assert_int_equal(want->ended_ms, got->ended_ms);
	assert_int_equal(want->bytes, got->bytes);
	assert_int_equal(want->types, got->types);
	assert_memory_equal(&want->totals, &got->totals, sizeof(want->totals));
	assert_int_equal(want->shown.task != NULL, got->shown.task != NULL);
	if (want->shown.task == NULL)
		return;
	same_text(want->shown.task, got->shown.task);
	same_text(want->shown.cwd, got->shown.cwd);
	same_text(want->shown.stop_reason, got->shown.stop_reason);
	assert_int_equal(want->shown.iterations, got->shown.iterations);
	assert_int_equal(want->shown.limit_ms, got->shown.limit_ms);
	assert_int_equal(want->shown.limit_microusd, got->shown.limit_microusd);
	assert_int_equal(want->shown.limit_tokens, got->shown.limit_tokens);
	assert_int_equal(want->shown.limit_iterations, got->shown.limit_iterations);
}

TEST(golden)
{
	TEST_BUF(b, 1 << 16);
	size_t len;
	char *golden;

	for (size_t i = 0; i < NROWS; i++)
		assert_int_equal(catalog_encode(&b, &rows[i]), 0);
	if (getenv("WRITE_GOLDEN") != NULL) /* only when FORMAT changes */
		unit_write(getenv("WRITE_GOLDEN"), b.data, b.len);
	golden = unit_read_src("test/golden/journal/catalog.jsonl", &len);
	assert_string_equal(b.data, golden);
	free(golden);
}

TEST(golden_is_read)
{
	size_t len, at = 0, line_len;
	char *golden = unit_read_src("test/golden/journal/catalog.jsonl", &len);
	struct catalog_row row;
	const char *line;

	for (size_t i = 0; i < NROWS; i++) {
		assert_int_equal(jsonl_next(golden, len, &at, &line, &line_len), 1);
		assert_int_equal(catalog_parse(line, line_len, &row, NULL), 0);
		same_row(&rows[i], &row);
		catalog_row_fini(&row);
	}
	assert_int_equal(at, len);
	free(golden);
}

TEST(document)
{
	size_t len;
	char *doc = unit_read_src("doc/JOURNAL.md", &len), *line = strstr(doc, "{\"row\":\"end\"");
	TEST_BUF(b, 1 << 16);

	assert_non_null(line);
	catalog_encode(&b, &rows[1]);
	assert_int_equal(strncmp(line, b.data, b.len), 0);
	/* its table of type bits */
	for (int k = 0; k < EVENT_NKINDS; k++) {
		buf_reset(&b);
		buf_addf(&b, "| %d | %s |", k, event_kind_name((enum event_kind)k));
		assert_non_null(strstr(doc, b.data));
	}
	free(doc);
}

static void refused(const char *line, size_t len)
{
	struct ava_error err = {0};
	struct catalog_row row;

	assert_int_equal(catalog_parse(line, len, &row, &err), AVA_ECORRUPT);
	assert_true(err.text[0] != '\0');
	assert_null(row.owned);
}

TEST(not_rows)
{
	static const char *const keys[] = {
		"row",       "lsn",        "id",     "traceId",       "sessionId",   "userId",
		"role",      "model",      "status", "requestId",     "origin",      "startedAt",
		"endedAt",   "bytes",      "types",  "totals",        "inputTokens", "outputTokens",
		"costCents", "durationMs", "calls",  "uncostedCalls", "failedCalls"};
	TEST_BUF(b, 1 << 16);

	catalog_encode(&b, &rows[1]);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char want[32], *at;

		snprintf(want, sizeof(want), "\"%s\":", keys[i]);
		at = strstr(b.data, want);
		assert_non_null(at);
		at[1] = '_';
		refused(b.data, b.len - 1);
		at[1] = keys[i][0];
	}
	for (size_t cut = 0; cut < b.len - 2; cut++)
		refused(b.data, cut);
	refused("[]", 2);
	refused("{\"row\":\"other\"}", 15);
}

/* Each escape, limits that are not known, and another byte anywhere makes it another row or none.
 */
TEST(any_byte)
{
	static const char others[] = "\"\\,:{}[]0129.-+eEn \x01\x80\xc3Z";
	struct catalog_row row = rows[2], got;
	struct buf b;
	TEST_BUF(again, 1 << 16);
	size_t len;

	row.shown.limit_ms = row.shown.limit_tokens = INT64_MIN;
	row.user_id = "\"\\\n\r\t\b\f\x01\x7f\xe2\x80\xa8\xf0\x9f\xa6\xa6";
	buf_init(&b, 1 << 16);
	assert_int_equal(catalog_encode(&b, &row), 0);
	len = b.len - 1;
	assert_int_equal(catalog_parse(b.data, len, &got, NULL), 0);
	same_row(&row, &got);
	catalog_row_fini(&got);
	for (size_t at = 0; at < len; at++) {
		char was = b.data[at];

		for (size_t k = 0; k + 1 < sizeof(others); k++) {
			b.data[at] = others[k];
			if (catalog_parse(b.data, len, &got, NULL) != 0)
				continue;
			buf_reset(&again);
			assert_int_equal(catalog_encode(&again, &got), 0);
			catalog_row_fini(&got);
		}
		b.data[at] = was;
	}
	buf_fini(&b);
}

TEST(no_memory)
{
	struct catalog_row row;
	struct buf b;
	int rv;

	FAULT_LOOP(k, {
		buf_init(&b, 1 << 16);
		rv = catalog_encode(&b, &rows[1]);
		assert_true(rv == 0 || rv == AVA_ENOMEM);
		if (rv == 0 && catalog_parse(b.data, b.len - 1, &row, NULL) == 0)
			catalog_row_fini(&row);
		buf_fini(&b);
	});
	buf_init(&b, 20);
	assert_int_equal(catalog_encode(&b, &rows[1]), AVA_ETOOBIG);
	buf_fini(&b);
}

struct told {
	int rows, broken;
};

static int tell(struct catalog_row *row, void *user)
{
	struct told *t = user;

	t->rows += row != NULL;
	t->broken += row == NULL;
	return 0;
}

/* Rows on both sides of 2 GiB that are no row, and in a second part: the file is read
 * through a window, whatever its size. */
TEST(larger_than_memory)
{
	const char *dir = unit_tmpdir();
	struct told told = {0};
	int root = open(dir, O_RDONLY | O_DIRECTORY), fd;
	TEST_BUF(b, 1 << 16);

	assert_int_equal(catalog_encode(&b, &rows[0]), 0);
	assert_int_equal(catalog_encode(&b, &rows[1]), 0);
	fd = openat(root, "catalog.2.jsonl", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, b.data, b.len), (ssize_t)b.len);
	close(fd);
	fd = openat(root, CATALOG_PATH, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(pwrite(fd, b.data, b.len, 0), (ssize_t)b.len);
	assert_int_equal(pwrite(fd, "\n", 1, 1LL << 31), 1);
	assert_int_equal(pwrite(fd, b.data, b.len, (1LL << 31) + 1), (ssize_t)b.len);
	close(fd);
	assert_int_equal(catalog_each(root, NULL, NULL, tell, &told, NULL), 0);
	assert_int_equal(told.rows, 6);
	assert_int_equal(told.broken, 1);
	close(root);
	unit_rmdir(dir);
}
