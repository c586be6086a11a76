/* The list of runs: which, in which order, and page by page while runs begin and end. */
#include "gateway_rig.h"

#include "journal/catalog.h"

#define RUNS "/api/v1/runs"
#define ROWS 40

/* The i-th run that began; its lsn are below those of the runtime, which has gone on to 1000. */
static void listing_fill(struct catalog_row *row, char text[4][64], unsigned i)
{
	static const char *const folders[] = {"/work", "/work/a", "/works", ""};
	static const enum ava_status ends[] = {AVA_SUCCESS, AVA_ERROR, AVA_CANCELLED, AVA_TIMEOUT};

	snprintf(text[0], 64, "S-%06x", i);
	snprintf(text[1], 64, "Compare KETTLES\nnumber-%u.", i);
	*row = (struct catalog_row){
		.kind = CATALOG_END,
		.status = ends[i % 4],
		.lsn = 4 * (i + 3 * i % 11) + 3, /* the order of the ends is another one */
		.spawn_lsn = 4 * i + 1,
		.id = text[0],
		.trace_id = "brave-otter",
		.session_id = i == 7 ? "mine" : "other",
		.user_id = i % 2 ? "eva" : "ben",
		.role = i % 2 ? "researcher" : "code_reviewer",
		.model = "offline",
		.group_id = i < 4 ? "G-00aa00" : "",
		.group_index = i < 4 ? i + 1 : 0,
		.tags = i % 5 ? "" : "nightly ops/x",
		/* the clock was set back now and then */
		.started_ms = 1790000000000 + i * 1000 - i % 3 * 3600000,
		.ended_ms = 1790000000000 + i * 1000,
		.totals = {.input_tokens = i * 7 % 10,
			   .cost_microusd = i * 10000,
			   .duration_ms = i * 13 % 9 * 1000},
		.shown = {.task = text[1], .cwd = folders[i % 4]},
	};
}

static void listing_lsn(void *arg)
{
	(void)journal_lsn(rig.core->book.journal, 1000);
}

static int listing_set_up(void **state)
{
	char path[400], text[4][64];
	struct catalog_row row;
	struct buf b;

	rig_set_up(state);
	rig_stop();
	buf_init(&b, 1 << 20);
	for (unsigned lsn = 0; lsn < 5 * ROWS; lsn++)
		for (unsigned i = 0; i < ROWS; i++) {
			listing_fill(&row, text, i);
			if (row.lsn == lsn)
				catalog_encode(&b, &row);
		}
	snprintf(path, sizeof(path), "%s/" CATALOG_PATH, rig.root);
	unit_write(path, b.data, b.len);
	buf_fini(&b);
	rig_start();
	rig_call(listing_lsn, NULL);
	return 0;
}
static void listing_refused(const char *query, const char *says)
{
	json_auto_t *v = rig_ask("GET", rig_path(RUNS "?%s", query), NULL, 400);
	const char *text = json_str(json_object_get(v, "error"), "message");

	if (!strstr(text, says))
		fail_msg("%s: %s, not %s", query, text, says);
}

TEST(which)
{
	static const struct {
		const char *query;
		size_t n;
	} rows[] = {
		{"", 0},
		{"all=1", ROWS},
		{"all=1&limit=7", 7},
		{"status=live", 0},
		{"status=live&all=1", 0},
		{"status=ended", ROWS},
		{"status=failed", 20},
		{"status=failed,success", 30},
		{"status=cancelled", 10},
		{"all=1&role=researcher", 20},
		{"all=1&role=researcher&user=eva&status=error", 10},
		{"all=1&role=researcher&user=ben", 0},
		{"all=1&model=offline", ROWS},
		{"all=1&model=off", 0},
		{"all=1&cwd=/work", 20},
		{"all=1&cwd=/work/", 20},
		{"all=1&cwd=/work/a", 10},
		{"all=1&cwd=/", 30},
		{"all=1&q=kettles%20compare", ROWS},
		{"all=1&q=Number-17.", 1},
		{"all=1&q=kettles%20teapots", 0},
		{"all=1&q=s-00001f", 1},
		{"all=1&q=Brave-OTTER%20/works%20code_rev", 10},
		{"all=1&q=OPS/X", 8},
		{"all=1&session=mine", 1},
		{"all=1&group=G-00aa00", 4},
		{"group=G-00aa00", 0},
		{"all=1&tag=nightly", 8},
		{"all=1&tag=ops/x", 8},
		{"all=1&tag=night", 0},
		{"all=1&min_cents=30", 10},
		{"all=1&min_cents=38.5", 1},
		{"all=1&since=2026-09-21T14:13:58.500Z", 1},
		{"all=1&since=2026-09-21T14:13:58.500Z&until=2026-09-21T14:13:59Z", 0},
		{"all=1&until=2026-09-21T11:00:00Z", 0},
		{"ids=S-000003,S-00ffff,S-000005", 2},
		{"ids=S-000003,S-000005&status=error", 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *v = rig_ask("GET", rig_path(RUNS "?%s", rows[i].query), NULL, 200);
		size_t n = json_array_size(json_object_get(v, "runs"));

		if (n != rows[i].n)
			fail_msg("%s: %zu runs, not %zu", rows[i].query, n, rows[i].n);
		assert_true(*json_str(v, "next") == '\0' || strstr(rows[i].query, "limit="));
	}
	listing_refused("status=done", "status is \"done\"; it must be of live, ended, failed, st");
	listing_refused("status=", "status is \"\"");
	listing_refused("sort=age", "sort is \"age\"");
	listing_refused("cwd=work", "cwd is \"work\"");
	listing_refused("since=soon", "soon");
	listing_refused("until=soon", "soon");
	listing_refused("min_cents=x", "min_cents is \"x\"; it must be a number of cents");
	listing_refused("ids=S-000003,x", "ids has \"x\"");
	listing_refused("before=1", "before is \"1\"");
	listing_refused("before=started.0.0.0.7x", "before is");
	listing_refused("sort=cost&before=started.0.0.0.7", "with the same sort");
}

TEST(counts)
{
	json_auto_t *v = rig_ask("GET", RUNS "?all=1&counts=1&limit=3", NULL, 200);
	const json_t *c = json_object_get(v, "counts"), *by = json_object_get(c, "by_status");

	assert_int_equal(json_array_size(json_object_get(v, "runs")), 3);
	assert_int_equal(json_get_int(c, "total", 0), ROWS);
	assert_int_equal(json_object_size(by), 4);
	assert_int_equal(json_get_int(by, "timeout", 0), 10);
	assert_int_equal(json_get_fixed(c, "cost_cents", 4, 0), 780 * 10000);
	json_decref(v);
	v = rig_ask("GET", RUNS "?all=1&limit=3", NULL, 200);
	assert_null(json_object_get(v, "counts"));
}

static void listing_stop(const char *id)
{
	json_decref(rig_ask("POST", rig_path(RUNS "/%s/cancel", id), NULL, 200));
}

static int64_t listing_figure(const json_t *run, const char *sort)
{
	return strcmp(sort, "started") == 0 ? strtol(json_str(run, "subagent_id") + 2, NULL, 16)
	       : strcmp(sort, "cost") == 0  ? json_get_fixed(run, "cost_cents", 4, 0)
	       : strcmp(sort, "time") == 0  ? json_get_fixed(run, "elapsed_seconds", 3, 0)
					    : json_get_int(run, "tokens_used", 0);
}

/* All pages. Behind the first one the run at work ends, and another begins and ends. */
static void listing_walk(const char *sort)
{
	char live[64], new[64], next[120] = "", query[300];
	unsigned seen[ROWS] = {0}, seen_live = 0, pages = 0;
	int64_t before = INT64_MAX;

	rig_run("slow.jsonl", live);
	do {
		json_auto_t *v;
		const json_t *run;
		size_t i;

		snprintf(query, sizeof(query), RUNS "?all=1&limit=7&sort=%s%s%s", sort,
			 pages++ > 0 ? "&before=" : "", next);
		v = rig_ask("GET", query, NULL, 200);
		json_array_foreach(json_object_get(v, "runs"), i, run)
		{
			const char *id = json_str(run, "subagent_id");
			long at = strtol(id + 2, NULL, 16);

			seen_live += strcmp(id, live) == 0;
			assert_true(at < ROWS || (pages == 1 && i == 0));
			if (at >= ROWS)
				continue;
			seen[at]++;
			assert_true(listing_figure(run, sort) <= before);
			before = listing_figure(run, sort);
		}
		snprintf(next, sizeof(next), "%s", json_str(v, "next"));
		if (pages == 1) {
			listing_stop(live);
			listing_stop(rig_run("slow.jsonl", new));
		}
	} while (*next);
	assert_int_equal(seen_live, 1);
	for (size_t i = 0; i < ROWS; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(pages, 6);
}

TEST(pages_by_start)
{
	listing_walk("started");
}

TEST(pages_by_cost)
{
	listing_walk("cost");
}

TEST(pages_by_time)
{
	listing_walk("time");
}

TEST(pages_by_tokens)
{
	listing_walk("tokens");
}

UNIT_GROUP(.before = listing_set_up, .after = rig_tear_down);
