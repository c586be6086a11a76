/* Sealing beside the work.
 *
 * The loop only notes which files grew. When the timer fires, the noted paths
 * go to a thread of the pool, which hashes what came and returns contents of
 * Seals; the loop commits them one after the other; then the thread notes the
 * newest in seals/last. One of these steps is under way at a time. A commit
 * that is refused is tried again with the same content, because the numbers
 * of Seals have no gaps. After a crash between two of them the next start
 * seals what it finds. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/error.h"
#include "base/sys.h"
#include "journal/seal.h"
#include "journal/seal_read.h"
#include "subagent/past.h"
#include "subagent/run.h"

#define TOGETHER 8 /* Seals in one commit */

enum seals_step { IDLE, HASHING, COMMITTING, NOTING };

struct seals {
	struct core *core;
	struct sealer *sealer; /* NULL until the first round, since opening it reads files */
	struct os_timer *timer;
	struct os_work work;
	enum seals_step step;
	bool armed, closing;
	bool over;               /* the sealer is closed; a refused commit may still come back */
	bool claimed;            /* a prune is under way; no other may begin */
	struct seal_gone *going; /* the first of `gone`, in the round under way, or NULL */
	uint64_t settled;        /* as of core_settled, when its Seals were on disk */
	struct strmap touched;   /* paths with new lines, as keys and values */
	size_t ntouched;

	/* The fields from here to `err` belong to the round under way. */
	char **paths;
	size_t npaths;
	struct seal_list contents;
	size_t committed; /* contents that are on disk */
	unsigned flying;
	char day[LOGBOOK_PATH];
	int rv;
	struct ava_error err;
	int told; /* the error that the log told last */

	struct list gone; /* struct seal_gone, in order */
	bool sealed;      /* the present text of the first stands in `contents` */
};

static void commit_some(struct seals *s);
static void begin_round(struct seals *s);

static void arm(struct seals *s)
{
	if (s->armed || s->closing || s->step != IDLE)
		return;
	if (s->ntouched == 0 && s->contents.n == 0)
		return;
	os_timer_set(s->timer, s->core->settings.seals_every_s * 1000);
	s->armed = true;
}

static void seals_touch(struct seals *s, char *path)
{
	if (strmap_put(&s->touched, path, path) != 0)
		free(path); /* noted already; or no memory, and its next line notes it */
	else
		s->ntouched++;
}

/* Files that only grow; other files of the journal may be replaced or removed. doc/SEALS.md has the
 * list. */
static bool is_sealed(const char *path)
{
	static const char *const begin[] = {"logs/ava/", "logs/subagents/", "runs/", "catalog."};

	for (size_t i = 0; i < ARRAY_LEN(begin); i++)
		if (strncmp(path, begin[i], strlen(begin[i])) == 0)
			return true;
	return false;
}

static void touched(const char *path, void *user)
{
	struct seals *s = user;
	char *copy;

	if (!is_sealed(path) || strmap_get(&s->touched, path))
		return;
	copy = strdup(path);
	if (copy)
		seals_touch(s, copy);
	arm(s);
}

static void seals_failed(struct seals *s, int rv, const struct ava_error *err)
{
	if (rv != s->told)
		core_log(s->core, "the logs could not be sealed (it is tried again): %s",
			 err->text[0] ? err->text : ava_strerror(rv));
	s->told = rv;
}

/* ---- files that go, a Seal for each list */

static void gone_end(struct seals *s, int rv, const struct ava_error *err)
{
	struct seal_gone *g = LIST_FIRST(&s->gone, struct seal_gone, node);

	list_del(&g->node);
	g->done(g, rv, err);
}

static void gone_next(struct seals *s)
{
	while (!list_empty(&s->gone) && s->step == IDLE && !s->closing) {
		struct seal_gone *g = LIST_FIRST(&s->gone, struct seal_gone, node);

		g->at += s->sealed;
		s->sealed = false;
		if (g->at == g->n)
			gone_end(s, 0, NULL);
		else
			begin_round(s);
	}
}

int seals_prune_claim(struct core *c, struct ava_error *err)
{
	struct seals *s = c->seals;

	if (!s || s->over || s->claimed)
		return err_set(err, AVA_EBUSY,
			       s && !s->over ? "logs are being pruned already"
					     : "the runtime stops");
	s->claimed = true;
	return 0;
}

void seals_prune_over(struct core *c)
{
	if (c->seals)
		c->seals->claimed = false;
}

int seals_go(struct seal_gone *g, void *core)
{
	struct seals *s = ((struct core *)core)->seals;

	if (!s || s->closing)
		return AVA_EBUSY;
	list_add(&s->gone, &g->node);
	if (s->contents.n == 0)
		gone_next(s);
	return 0;
}

/* ---- hashing, on a thread of the pool */

static void hash_work(struct os_work *w)
{
	struct seals *s = w->priv;
	const char *text = s->going ? s->going->texts[s->going->at].data : NULL;

	s->err = (struct ava_error){0};
	s->rv = s->sealer ? 0 : sealer_open(&s->sealer, s->core->root_fd, &s->err);
	if (s->rv == 0)
		s->rv = sealer_round(s->sealer, s->paths, s->npaths, text, &s->contents, &s->err);
}

static void hash_done(struct os_work *w)
{
	struct seals *s = w->priv;
	bool going = s->going != NULL;

	for (size_t i = 0; i < s->npaths; i++) {
		if (s->rv != 0)
			seals_touch(s, s->paths[i]);
		else
			free(s->paths[i]);
	}
	free(s->paths);
	s->paths = NULL;
	s->npaths = 0;
	if (s->rv != 0)
		seals_failed(s, s->rv, &s->err);
	s->step = IDLE;
	s->going = NULL;
	s->sealed = going && s->rv == 0;
	if (going && s->rv != 0)
		gone_end(s, s->rv, &s->err);
	if (s->contents.n > 0)
		commit_some(s);
	else
		gone_next(s);
	arm(s);
}

static bool take_paths(struct seals *s)
{
	size_t at = 0;
	char *path;

	s->paths = calloc(s->ntouched + 1, sizeof(*s->paths));
	if (!s->paths)
		return false;
	while ((path = strmap_next(&s->touched, &at)))
		s->paths[s->npaths++] = path;
	strmap_fini(&s->touched);
	strmap_init(&s->touched);
	s->ntouched = 0;
	return true;
}

static void fire(void *user)
{
	struct seals *s = user;

	s->armed = false;
	if (s->step != IDLE)
		return; /* the end of that step sets the timer */
	if (s->contents.n > 0)
		commit_some(s);
	else
		begin_round(s);
	arm(s);
}

static void begin_round(struct seals *s)
{
	struct seal_gone *g = LIST_FIRST(&s->gone, struct seal_gone, node);

	if (!take_paths(s)) {
		if (g)
			gone_end(s, AVA_ENOMEM, NULL);
		return;
	}
	s->going = g;
	s->step = HASHING;
	s->work = (struct os_work){.work = hash_work, .done = hash_done, .priv = s};
	os_work_start(s->core->loop, &s->work);
}

/* ---- seals/last, on a thread of the pool */

static void note_work(struct os_work *w)
{
	struct seals *s = w->priv;

	s->err = (struct ava_error){0};
	s->rv = sealer_committed(s->sealer, s->day, &s->err);
	past_keep(s->core->root_fd, &s->core->settings, PAST_BEHIND, s->settled);
}

static void note_done(struct os_work *w)
{
	struct seals *s = w->priv;

	s->told = s->rv == 0 ? 0 : s->told;
	if (s->rv != 0)
		seals_failed(s, s->rv, &s->err);
	s->step = IDLE;
	gone_next(s);
	arm(s);
}

/* ---- commits */

static void committed(int rv, void *user)
{
	struct seals *s = user;
	struct ava_error err = {0};

	s->step = IDLE;
	if (s->over)
		return;
	if (rv != 0) {
		seals_failed(s, rv, &err);
		arm(s);
		return;
	}
	s->committed += s->flying;
	if (s->committed < s->contents.n) {
		commit_some(s);
		return;
	}
	seal_list_fini(&s->contents);
	s->committed = 0;
	if (s->closing)
		return; /* seals_close does the rest */
	s->step = NOTING;
	s->settled = core_settled(s->core);
	s->work = (struct os_work){.work = note_work, .done = note_done, .priv = s};
	os_work_start(s->core->loop, &s->work);
}

static void commit_some(struct seals *s)
{
	struct draft *d = draft_new(&s->core->book);
	struct ava_error err = {0};
	size_t n = MIN(s->contents.n - s->committed, TOGETHER);
	int rv = d ? 0 : AVA_ENOMEM;

	if (d) {
		d->quiet = true;
		for (size_t i = 0; i < n; i++) {
			const struct buf *content = &s->contents.contents[s->committed + i];
			struct buf copy;

			buf_init(&copy, content->len + 1);
			buf_add(&copy, content->data, content->len);
			core_event(s->core, d, EVENT_Seal, "", "", &copy);
		}
		snprintf(s->day, sizeof(s->day), "%s",
			 d->nparts > 0 ? d->parts[d->nparts - 1]->path : "");
		s->flying = (unsigned)n;
		s->step = COMMITTING;
		rv = draft_commit(d, JOURNAL_RIDE, committed, s, &err);
	}
	if (rv != 0) {
		s->step = IDLE;
		seals_failed(s, rv, &err);
		arm(s);
	}
}

/* ---- life */

int seals_open(struct core *c, struct ava_error *err)
{
	struct seals *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	s->core = c;
	s->timer = os_timer_new(c->loop, fire, s);
	if (!s->timer) {
		free(s);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	strmap_init(&s->touched);
	list_init(&s->gone);
	c->seals = s;
	c->book.touched = touched;
	c->book.touched_user = s;
	return 0;
}

/* After an end without a last Seal: runs that go on may have lines that are in none. */
void seals_restore(struct core *c)
{
	char path[LOGBOOK_PATH];
	struct stat st;

	if (sys->fstatat(c->root_fd, SEAL_OPEN_PATH, &st, 0) != 0)
		return;
	LIST_EACH (&c->sup.live, n, tmp) {
		const struct run *r = LIST_ENTRY(n, struct run, node);

		logbook_run_path(r->id.text, path);
		touched(path, c->seals);
		logbook_messages_path(r->id.text, path);
		touched(path, c->seals);
	}
}

/* Seals and commits everything noted: 0, or the failure. */
static int seal_rest(struct seals *s)
{
	int rv = 0;

	if (s->contents.n == 0 && s->ntouched > 0) {
		if (!take_paths(s))
			return AVA_ENOMEM;
		hash_work(&s->work);
		rv = s->rv;
		hash_done(&s->work);
	} else if (s->contents.n > 0) {
		commit_some(s);
	}
	for (int i = 0; i < 10000 && s->step == COMMITTING; i++)
		journal_sync(s->core->journal);
	if (rv == 0 && s->contents.n > 0)
		rv = AVA_EIO;
	if (rv == 0 && s->sealer && s->day[0])
		rv = sealer_committed(s->sealer, s->day, &s->err);
	return rv;
}

void seals_close(struct core *c)
{
	struct seals *s = c->seals;
	char *path;
	size_t at = 0;
	int rv;

	if (!s)
		return;
	s->closing = true;
	os_timer_stop(s->timer);
	/* Threads of the pool answer through the loop, commits through the journal. */
	while (s->step == HASHING || s->step == NOTING)
		os_loop_step(c->loop, -1);
	if (s->step == COMMITTING)
		journal_sync(c->journal);
	s->work.priv = s;
	/* Seal the contents of a refused commit, then files that grew since. */
	while (!list_empty(&s->gone))
		gone_end(s, AVA_ECANCELED, NULL);
	rv = seal_rest(s);
	if (rv == 0 && s->ntouched > 0)
		rv = seal_rest(s);
	c->book.touched = NULL;
	sealer_close(s->sealer, rv == 0);
	os_timer_free(s->timer);
	while ((path = strmap_next(&s->touched, &at)))
		free(path);
	strmap_fini(&s->touched);
	seal_list_fini(&s->contents);
	s->over = true;
}

void seals_free(struct core *c)
{
	free(c->seals);
	c->seals = NULL;
}
