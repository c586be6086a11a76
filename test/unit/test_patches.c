/* Patches that wait for a person: what begins and ends one, from the logs that a start finds. */
#include <unistd.h>

#include "world.h"

#include "ava/ask.h"
#include "ava/patches.h"
#include "base/clock.h"
#include "codec/json.h"

/* Adds a line to the log of today, or of the day `days` before, and makes the folder of the run. */
static void logged(struct world *w, int days, const char *type, const char *run,
		   const char *content)
{
	static unsigned lsn;
	int64_t at_ms = clock_wall_ms() - days * INT64_C(86400000);
	char at[CLOCK_ISO_LEN + 1], day[11], path[400];
	FILE *f;

	clock_iso(at_ms, at);
	clock_local_date(at_ms, day);
	for (const char *dir = "logs\0logs/ava\0runs\0"; *dir; dir += strlen(dir) + 1) {
		snprintf(path, sizeof(path), "%s/%s", w->root, dir);
		mkdir(path, 0700);
	}
	snprintf(path, sizeof(path), "%s/runs/%s", w->root, run);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/logs/ava/%s.jsonl", w->root, day);
	f = fopen(path, "a");
	assert_non_null(f);
	lsn++;
	fprintf(f,
		"{\"timestamp\":\"%s\",\"lsn\":%u,\"seq\":%u,\"eventType\":\"%s\",\"agentId\":"
		"\"ava\",\"sessionId\":\"talk\",\"traceId\":\"\",\"userId\":\"\",\"content\":%s,"
		"\"metadata\":{}}\n",
		at, lsn, lsn, type, content);
	fclose(f);
}

static void ended(struct world *w, int days, const char *run, int files, const char *from)
{
	char content[400];

	snprintf(content, sizeof(content), "{\"subagentId\":\"%s\",\"files\":%d%s%s%s}", run, files,
		 from ? ",\"resumedFrom\":\"" : "", from ? from : "", from ? "\"" : "");
	logged(w, days, "SubagentComplete", run, content);
}

static void answered(struct world *w, const char *run, const char *how)
{
	char content[400];

	snprintf(content, sizeof(content),
		 "{\"customType\":\"%s\",\"data\":{\"subagentId\":\"%s\"}}", how, run);
	logged(w, 0, "Custom", run, content);
}

struct names {
	char ids[4096];
	unsigned n;
};

static void name_ask(const struct ask *a, void *user)
{
	struct names *l = user;

	assert_int_equal(a->kind, ASK_APPLY);
	if (l->n++ < 8)
		snprintf(l->ids + strlen(l->ids), sizeof(l->ids) - strlen(l->ids), "%s ", a->id);
}

static struct names waiting(struct world *w, const char *session)
{
	struct names l = {0};

	ask_each(w->core, session, name_ask, &l);
	return l;
}

static int set_up(void **state)
{
	*state = world_new("offline");
	return 0;
}

TEST_OF(restored, struct world *w)
{
	struct patch_offer *o;
	struct ask ask;
	char path[400];

	ended(w, 8, "S-aaaaa0", 1, NULL); /* too old */
	ended(w, 1, "S-aaaaa1", 2, NULL);
	ended(w, 0, "S-aaaaa2", 1, NULL);
	ended(w, 0, "S-aaaaa3", 1, NULL);
	ended(w, 0, "S-aaaaa4", 1, NULL);
	ended(w, 0, "S-aaaaa5", 0, NULL);
	answered(w, "S-aaaaa2", "left");
	answered(w, "S-aaaaa1", "audit.applied"); /* another program's */
	ended(w, 0, "S-aaaaa6", 1, "S-aaaaa3");
	snprintf(path, sizeof(path), "%s/runs/S-aaaaa4", w->root);
	rmdir(path); /* pruned */
	open_core(w);
	assert_string_equal(waiting(w, NULL).ids, "S-aaaaa1:patch S-aaaaa6:patch ");
	assert_int_equal(waiting(w, "talk").n, 2);
	assert_int_equal(waiting(w, "another").n, 0);
	assert_true(ask_find(w->core, "S-aaaaa1:patch", &ask));
	assert_int_equal(ask.until_ms - ask.since_ms, INT64_C(7) * 86400000);
	assert_false(ask_find(w->core, "S-aaaaa1", &ask));
	assert_false(ask_find(w->core, "S-aaaaa1:patches", &ask));
	assert_false(ask_find(w->core, "S-aaaaa2:patch", &ask));
	o = patches_named(w->core, "S-aaaaa2:patch");
	assert_non_null(o);
	assert_string_equal(json_str(o->answer, "customType"), "left");
	reopen(w);
	assert_int_equal(waiting(w, NULL).n, 2);
}

TEST_OF(ends, struct world *w)
{
	struct patch_offer *o;

	ended(w, 0, "S-aaaaa1", 1, NULL);
	open_core(w);
	o = patches_find(w->core, "S-aaaaa1");
	o->busy = true; /* an answer at work keeps it */
	patches_forget(w->core, "S-aaaaa1");
	o->until_ms = 1;
	assert_ptr_equal(patches_find(w->core, "S-aaaaa1"), o);
	o->busy = false;
	assert_int_equal(waiting(w, NULL).n, 0);
	assert_null(patches_find(w->core, "S-aaaaa1"));
	assert_true(list_empty(&w->core->patches));
}

TEST_OF(bounded, struct world *w)
{
	char run[24];

	for (int i = 0; i < 260; i++) {
		snprintf(run, sizeof(run), "S-%06x", i);
		ended(w, 0, run, 1, NULL);
	}
	open_core(w);
	assert_int_equal(waiting(w, NULL).n, 256);
	assert_null(patches_find(w->core, "S-000003"));
	assert_non_null(patches_find(w->core, "S-000004"));
}

UNIT_GROUP(.before = set_up, .after = tear_down);
