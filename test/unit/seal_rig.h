/* A data root made by hand for sealing and verifying: events in daily logs
 * and run files, sealed by the real sealer, without journal and core. */
#ifndef UNIT_SEAL_RIG_H
#define UNIT_SEAL_RIG_H

#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "event/event.h"
#include "journal/seal.h"

struct seal_rig {
	char root[256];
	int fd;
	struct sealer *sealer;
	uint64_t lsn, day_seq, seed;
	char day[64]; /* "logs/ava/2026-11-21.jsonl" */
	char *touched[64];
	size_t ntouched;
};

static inline uint64_t rig_random(struct seal_rig *r) /* splitmix64 */
{
	uint64_t z = r->seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline const char *rig_full(const struct seal_rig *r, const char *path)
{
	static char full[600];

	snprintf(full, sizeof(full), "%s/%s", r->root, path);
	return full;
}

/* The whole content, in a file made anew: cutting one makes some file systems
 * write it out. */
static inline void rig_put(const struct seal_rig *r, const char *path, const void *data, size_t len)
{
	unlink(rig_full(r, path));
	unit_write(rig_full(r, path), data, len);
}

static inline void rig_init(struct seal_rig *r, uint64_t seed)
{
	*r = (struct seal_rig){.seed = seed};
	snprintf(r->root, sizeof(r->root), "%s", unit_tmpdir());
	r->fd = open(r->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(r->fd >= 0);
	unit_mkdirs(r->root, "logs/ava/");
	unit_mkdirs(r->root, "logs/subagents/");
	unit_mkdirs(r->root, "runs/");
	unit_mkdirs(r->root, "lost/");
	snprintf(r->day, sizeof(r->day), "logs/ava/2026-11-19.jsonl");
}

/* The rig of a test; rig_after makes an end of it. */
static struct seal_rig rig;

static inline void rig_forget(struct seal_rig *r)
{
	for (size_t i = 0; i < r->ntouched; i++)
		free(r->touched[i]);
	r->ntouched = 0;
}

static inline void rig_fini(struct seal_rig *r)
{
	sealer_close(r->sealer, false);
	rig_forget(r);
	close(r->fd);
	unit_rmdir(r->root);
}

static inline int rig_after(void **state)
{
	rig_fini(&rig);
	rig = (struct seal_rig){0};
	return 0;
}

static inline void rig_append(struct seal_rig *r, const char *path, const void *data, size_t len)
{
	unit_append(rig_full(r, path), data, len);
	for (size_t i = 0; i < r->ntouched; i++)
		if (strcmp(r->touched[i], path) == 0)
			return;
	assert_true(r->ntouched < 64);
	r->touched[r->ntouched++] = strdup(path);
}

static inline void rig_event(struct seal_rig *r, const char *path, enum event_kind kind,
			     const char *agent, uint64_t seq, const char *content)
{
	struct event_head head = {.kind = kind,
				  .wall_ms = 1795248000000 + (int64_t)r->lsn * 37,
				  .lsn = ++r->lsn,
				  .seq = seq,
				  .agent_id = agent};
	TEST_BUF(b, 4u << 20);

	assert_int_equal(event_encode(&b, &head, content, strlen(content), NULL), 0);
	rig_append(r, path, b.data, b.len);
}

/* An event of up to some hundred bytes, no two alike. */
static inline void rig_some(struct seal_rig *r, const char *path, const char *agent, uint64_t seq)
{
	char content[700];
	int len = snprintf(content, sizeof(content), "{\"text\":\"%llu",
			   (unsigned long long)rig_random(r));

	for (uint64_t n = rig_random(r) % 400; n > 0; n--)
		content[len++] = (char)('a' + (int)(rig_random(r) % 26));
	snprintf(content + len, sizeof(content) - (size_t)len, "\"}");
	rig_event(r, path, EVENT_Activity, agent, seq, content);
}

static inline void rig_day_event(struct seal_rig *r)
{
	rig_some(r, r->day, "ava", ++r->day_seq);
}

/* What the core does every ten seconds. */
static inline void rig_seal(struct seal_rig *r)
{
	struct seal_list out = {0};
	struct ava_error err = {0};

	if (r->sealer == NULL && sealer_open(&r->sealer, r->fd, &err) != 0)
		fail_msg("%s", err.text);
	if (sealer_round(r->sealer, r->touched, r->ntouched, NULL, &out, &err) != 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < out.n; i++)
		rig_event(r, r->day, EVENT_Seal, "ava", ++r->day_seq, out.contents[i].data);
	if (out.n > 0 && sealer_committed(r->sealer, r->day, &err) != 0)
		fail_msg("%s", err.text);
	seal_list_fini(&out);
	rig_forget(r);
}

/* Another process: the last one ended in order, or not. */
static inline void rig_restart(struct seal_rig *r, bool complete)
{
	sealer_close(r->sealer, complete);
	r->sealer = NULL;
}

/* Three days, runs that go over them, restarts in order and not. */
static inline void rig_fill(struct seal_rig *r, uint64_t seed)
{
	uint64_t seq[6] = {0};

	rig_init(r, seed);
	for (int day = 0; day < 3; day++) {
		snprintf(r->day, sizeof(r->day), "logs/ava/2026-11-%d.jsonl", 19 + day);
		r->day_seq = 0;
		for (int round = 0; round < 6; round++) {
			for (int i = 0; i < 12; i++) {
				unsigned run = (unsigned)(rig_random(r) % 2) + 2 * (unsigned)day;
				char path[64], agent[16];

				snprintf(agent, sizeof(agent), "S-00000%u", run);
				snprintf(path, sizeof(path), "logs/subagents/%s.jsonl", agent);
				rig_some(r, path, agent, ++seq[run]);
				rig_day_event(r);
			}
			for (int i = 0; i < 3; i++) {
				char row[64];

				snprintf(row, sizeof(row), "{\"row\":\"spawn\",\"lsn\":%llu}\n",
					 (unsigned long long)++r->lsn);
				rig_append(r, "catalog.jsonl", row, strlen(row));
			}
			rig_seal(r);
			if (round == 3)
				rig_restart(r, day == 1);
		}
	}
}

/* ---- what verify finds */

struct rig_found {
	size_t n, broken;
	const char *want;   /* a finding with this path … */
	uint64_t want_line; /* … and this line (0: any) */
	bool hit;
	char first[400]; /* the first broken one, in words */
	char all[8000];
};

static inline void rig_finding(const struct ava_finding *f, void *user)
{
	struct rig_found *w = user;
	size_t at = strlen(w->all);

	w->n++;
	snprintf(w->all + at, sizeof(w->all) - at, "%d %s:%llu: %s\n", f->kind, f->path,
		 (unsigned long long)f->line, f->what);
	if (f->kind != AVA_BROKEN)
		return;
	if (w->broken++ == 0)
		snprintf(w->first, sizeof(w->first), "%s:%llu: %s", f->path,
			 (unsigned long long)f->line, f->what);
	if (w->want && strcmp(f->path, w->want) == 0 &&
	    (w->want_line == 0 || w->want_line == f->line))
		w->hit = true;
}

static inline struct ava_verified rig_verify(struct seal_rig *r, struct rig_found *w)
{
	struct ava_verify o = {.root = r->root, .finding = rig_finding, .user = w, .threads = 1};
	struct ava_verified report;
	struct ava_error err = {0};

	w->n = w->broken = 0;
	w->hit = false;
	w->all[0] = w->first[0] = '\0';
	if (ava_log_verify(&o, &report, &err) != 0)
		fail_msg("verify: %s", err.text);
	assert_int_equal(report.broken, w->broken);
	return report;
}

/* Seals, and says that the file goes. */
static inline void rig_seal_gone(struct seal_rig *r, const char *path)
{
	struct seal_list out = {0};
	char text[300];

	snprintf(text, sizeof(text), "{\"upTo\":0,\"hash\":\"\",\"files\":[{\"path\":\"%s\"}]}",
		 path);
	assert_int_equal(sealer_round(r->sealer, r->touched, r->ntouched, text, &out, NULL), 0);
	for (size_t i = 0; i < out.n; i++)
		rig_event(r, r->day, EVENT_Seal, "ava", ++r->day_seq, out.contents[i].data);
	assert_int_equal(sealer_committed(r->sealer, r->day, NULL), 0);
	seal_list_fini(&out);
	rig_forget(r);
}

#endif
