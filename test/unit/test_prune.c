/* Pruning a root of three days: what went is gone, what stayed verifies, and
 * nothing goes that lives or that is not as it was sealed. */
#include "seal_rig.h"

#include "ava/prune.h"
#include "base/settings.h"
#include "base/sys.h"
#include "journal/catalog.h"
#include "os/loop.h"
#include "provider/head.h"

#define NOON INT64_C(1795262400000) /* 2026-11-21T12:00Z */
#define DAY  INT64_C(86400000)

static void add_row(struct seal_rig *r, enum catalog_kind kind, unsigned run, int64_t ended_ms)
{
	char id[16];
	struct catalog_row row = {.kind = kind,
				  .status = AVA_SUCCESS,
				  .lsn = ++r->lsn,
				  .id = id,
				  .started_ms = NOON - 3 * DAY,
				  .ended_ms = ended_ms};
	TEST_BUF(b, 4096);

	snprintf(id, sizeof(id), "S-00000%u", run);
	assert_int_equal(catalog_encode(&b, &row), 0);
	rig_append(r, "catalog.jsonl", b.data, b.len);
}

/* Two runs ended on each day. */
static void make(struct seal_rig *r, bool all_ended)
{
	rig_fill(r, 7);
	for (unsigned run = 0; run < 6; run++) {
		add_row(r, CATALOG_SPAWN, run, -1);
		if (all_ended || run != 1)
			add_row(r, CATALOG_END, run, NOON - (2 - (int)run / 2) * DAY);
	}
	mkdir(rig_full(r, "runs/S-000000"), 0700);
	mkdir(rig_full(r, "runs/S-000000/artifacts"), 0700);
	unit_write(rig_full(r, "runs/S-000000/artifacts/a.txt"), "a", 1);
	rig_day_event(r);
	rig_seal(r);
	rig_restart(r, true);
}

static int prune(struct seal_rig *r, bool dry, struct buf *report, struct ava_error *err)
{
	struct settings settings;
	struct core_options o = {.root = r->root, .settings = &settings};
	int rv;

	settings_defaults(&settings);
	o.loop = os_loop_new(NULL);
	buf_init(report, 1u << 20);
	rv = core_prune(&o, NOON - DAY / 4, dry, report, err);
	os_loop_free(o.loop);
	return rv;
}

static bool there(const struct seal_rig *r, const char *path)
{
	return access(rig_full(r, path), F_OK) == 0;
}

TEST(what_goes_and_what_stays)
{
	struct rig_found w = {0};
	struct ava_error err = {0};
	struct buf report;

	make(&rig, true);
	assert_int_equal(prune(&rig, true, &report, &err), 0);
	assert_non_null(strstr(report.data, "\"dryRun\":true,\"runs\":[\"S-000000\",\"S-000001\","
					    "\"S-000002\",\"S-000003\"]"));
	buf_fini(&report);
	assert_true(there(&rig, "logs/ava/2026-11-19.jsonl"));
	assert_true(there(&rig, "logs/subagents/S-000000.jsonl"));

	if (prune(&rig, false, &report, &err) != 0)
		fail_msg("%s", err.text);
	buf_fini(&report);
	assert_false(there(&rig, "logs/ava/2026-11-19.jsonl"));
	assert_false(there(&rig, "logs/ava/2026-11-20.jsonl"));
	assert_true(there(&rig, "logs/ava/2026-11-21.jsonl"));
	assert_false(there(&rig, "logs/subagents/S-000000.jsonl"));
	assert_false(there(&rig, "runs/S-000000"));
	assert_true(there(&rig, "logs/subagents/S-000004.jsonl"));
	rig_verify(&rig, &w);
	if (w.broken > 0)
		fail_msg("%s", w.all);
	assert_non_null(strstr(w.all, "was pruned"));

	/* Again: there is nothing left to do, and all still holds. */
	assert_int_equal(prune(&rig, false, &report, &err), 0);
	assert_non_null(strstr(report.data, "\"runs\":[],\"days\":[],\"files\":0"));
	buf_fini(&report);
	rig_verify(&rig, &w);
	assert_int_equal(w.broken, 0);

	/* What stayed is guarded as before. */
	unlink(rig_full(&rig, "logs/subagents/S-000004.jsonl"));
	w.want = "logs/subagents/S-000004.jsonl";
	rig_verify(&rig, &w);
	assert_true(w.hit);
}

/* A file of messages that refers to a head of this text, and the head; its path. */
static const char *referred(struct seal_rig *r, const char *path, const char *text)
{
	static char head[8][HEAD_PATH];
	static unsigned n;
	char name[HASH_HEX_LEN + 1];
	TEST_BUF(line, 4096);

	hash_sha256_hex(text, strlen(text), name);
	head_path((struct slice){name, HASH_HEX_LEN}, head[n]);
	unit_write(rig_full(r, head[n]), text, strlen(text));
	buf_addf(&line, "{\"spec\":{\"machine\":1,\"head\":\"%s\"}}\n", name);
	unit_write(rig_full(r, path), line.data, line.len);
	return head[n++ % 8];
}

/* Heads that nothing refers to any more go; others' files do not. */
TEST(heads)
{
	static const char *const folders[] = {"heads", "runs/S-000005", "runs/S-000001", "sessions",
					      "sessions/--a--"};
	const char *gone, *talk, *part, *stays;
	struct rig_found w = {0};
	struct ava_error err = {0};
	struct buf report;

	make(&rig, true);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		mkdir(rig_full(&rig, folders[i]), 0700);
	gone = referred(&rig, "runs/S-000001/messages.jsonl", "{\"gone\":[");
	stays = referred(&rig, "runs/S-000005/messages.jsonl", "{\"stays\":[");
	talk = referred(&rig, "sessions/--a--/b.messages.jsonl", "{\"talk\":[");
	part = referred(&rig, "sessions/--a--/c.messages.2.jsonl", "{\"part\":[");
	unit_write(rig_full(&rig, "heads/mine"), "", 0);
	assert_int_equal(prune(&rig, true, &report, &err), 0);
	buf_fini(&report);
	assert_true(there(&rig, gone));
	assert_int_equal(prune(&rig, false, &report, &err), 0);
	buf_fini(&report);
	assert_false(there(&rig, gone));
	assert_true(there(&rig, stays));
	assert_true(there(&rig, talk));
	assert_true(there(&rig, part));
	assert_true(there(&rig, "heads/mine"));
	unlink(rig_full(&rig, "heads/mine"));
	rig_verify(&rig, &w);
	assert_int_equal(w.broken, 0);
	unit_write(rig_full(&rig, stays), "{\"stayt\":[", 10);
	w.want = stays;
	rig_verify(&rig, &w);
	assert_true(w.hit);
}

static struct sys_ops head_gone; /* a head goes when its turn has come */

static int open_gone(int dirfd, const char *path, int flags, mode_t mode)
{
	if (strncmp(path, "heads/", 6) == 0)
		unlink(rig_full(&rig, path));
	return sys_real.openat(dirfd, path, flags, mode);
}

/* A head that sealed messages refer to is missed, but not one that pruning takes just now. */
TEST(a_head_is_missed)
{
	static const char messages[] = "runs/S-000000/messages.jsonl";
	struct rig_found w = {.want = messages};
	const char *head;

	rig_init(&rig, 7);
	mkdir(rig_full(&rig, "heads"), 0700);
	mkdir(rig_full(&rig, "runs/S-000000"), 0700);
	head = referred(&rig, messages, "{\"missed\":[");
	rig_append(&rig, messages, "", 0);
	rig_day_event(&rig);
	rig_seal(&rig);
	rig_verify(&rig, &w);
	assert_int_equal(w.broken, 0);
	unlink(rig_full(&rig, head));
	rig_verify(&rig, &w);
	assert_true(w.hit);
	assert_non_null(strstr(w.first, head));
	head = referred(&rig, "runs/other", "{\"missed_not\":[");
	unlink(rig_full(&rig, "runs/other"));
	head_gone = sys_real;
	head_gone.openat = open_gone;
	sys = &head_gone;
	rig_verify(&rig, &w);
	sys = &sys_real;
	assert_false(there(&rig, head));
	assert_int_equal(w.broken, 1); /* the one from before */
}

TEST(a_live_run_is_in_the_way)
{
	struct ava_error err = {0};
	struct buf report;

	make(&rig, false);
	assert_int_equal(prune(&rig, false, &report, &err), AVA_EBUSY);
	assert_non_null(strstr(err.text, "S-000001"));
	buf_fini(&report);
	assert_true(there(&rig, "logs/ava/2026-11-19.jsonl"));
	assert_true(there(&rig, "logs/subagents/S-000000.jsonl"));
}

TEST(nothing_is_hidden)
{
	struct ava_error err = {0};
	struct buf report;
	size_t len;
	char *data;

	make(&rig, true);
	data = unit_read(rig_full(&rig, "logs/subagents/S-000002.jsonl"), &len);
	data[len / 2] ^= 1;
	unit_write(rig_full(&rig, "logs/subagents/S-000002.jsonl"), data, len);
	free(data);
	assert_int_equal(prune(&rig, false, &report, &err), AVA_ECORRUPT);
	assert_non_null(strstr(err.text, "logs/subagents/S-000002.jsonl"));
	buf_fini(&report);
	assert_true(there(&rig, "logs/ava/2026-11-19.jsonl"));
}

UNIT_GROUP(.after = rig_after);
