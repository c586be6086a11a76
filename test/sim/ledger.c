/* Commits wait in a list until their time; then they are carried out on the disk
 * and the owner is told. Numbers go on behind the highest that is durable. */
#include "ledger.h"

#include <assert.h>
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/sys.h"
#include "base/util.h"
#include "clockwork.h"
#include "journal/journal.h"
#include "memdisk.h"

struct ledger_temper ledger_temper;

struct batch {
	struct list node;
	struct journal_op *ops; /* owned, with what they point to */
	unsigned n;
	uint64_t lsn; /* the highest that was given until then */
	int rv;
	journal_done_fn done;
	void *user;
};

struct journal {
	struct list waiting, settled;
	void (*notify)(void *user);
	void *user;
	uint64_t lsn;
	int64_t last_at; /* the disk answers in order */
};

static struct ledger only;
static struct ledger *own = &only; /* the process at work has that one */

void ledger_use(struct ledger *l)
{
	own = l != NULL ? l : &only;
}

void ledger_open(struct memdisk *d)
{
	*own = (struct ledger){.disk = d, .orderly = true};
}

void ledger_go_on(struct memdisk *d)
{
	own->disk = d;
}

uint64_t ledger_commits(void)
{
	return own->ncommits;
}

/* ---- carrying out */

static void make_folders(const char *path)
{
	char part[512];

	for (const char *at = strchr(path, '/'); at != NULL; at = strchr(at + 1, '/')) {
		snprintf(part, sizeof(part), "/%.*s", (int)(at - path), path);
		if (sys->mkdirat(AT_FDCWD, part, 0700) != 0)
			assert(errno == EEXIST);
	}
}

static void write_file(const char *path, const void *bytes, size_t len, int flags)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "/%s", path);
	fd = sys->openat(AT_FDCWD, full, O_WRONLY | O_CREAT | O_APPEND | flags, 0600);
	if (fd < 0 && errno == ENOENT) {
		make_folders(path);
		fd = sys->openat(AT_FDCWD, full, O_WRONLY | O_CREAT | O_APPEND | flags, 0600);
	}
	assert(fd >= 0);
	if (len > 0 && sys->pwrite(fd, bytes, len, 0) != (ssize_t)len)
		abort();
	sys->close(fd);
}

static void carry_out(const struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		const struct journal_op *op = &b->ops[i];

		assert(op->kind != JOURNAL_ENTRY); /* there is no conversation here */
		if (op->kind != JOURNAL_DROP)
			write_file(op->path, op->bytes, op->len,
				   op->kind == JOURNAL_PUT ? O_TRUNC : 0);
	}
	own->durable_lsn = MAX(own->durable_lsn, b->lsn);
	own->ncommits++;
}

static void batch_free(struct batch *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		free((void *)(uintptr_t)b->ops[i].path);
		free((void *)(uintptr_t)b->ops[i].bytes);
	}
	free(b->ops);
	free(b);
}

static void settle(struct journal *j, struct batch *b)
{
	if (b->rv == 0)
		carry_out(b);
	list_del(&b->node);
	list_add(&j->settled, &b->node);
}

static void comes_true(void *user)
{
	struct journal *j = user;
	struct batch *b = LIST_FIRST(&j->waiting, struct batch, node);

	if (b == NULL || !clockwork_touch()) /* NULL: a sync was first */
		return;
	settle(j, b);
	j->notify(j->user);
}

/* A prefix of what waits got through; that one of them failed nobody was told. */
struct memdisk *ledger_left(void)
{
	struct memdisk *left = memdisk_clone(own->disk);
	struct journal *j = own->open_one;
	int64_t n = 0;

	own->orderly = false;
	if (j == NULL)
		return left;
	LIST_EACH (&j->waiting, node, tmp)
		n++;
	n = n > 0 && sim_maybe(500) ? sim_span(0, n) : 0;
	memdisk_use(left);
	LIST_EACH (&j->waiting, node, tmp) {
		struct batch *b = LIST_ENTRY(node, struct batch, node);

		if (n-- <= 0)
			break;
		if (b->rv == 0)
			carry_out(b);
	}
	memdisk_use(own->disk);
	return left;
}

/* ---- journal/journal.h */

int journal_open(struct journal **out, const struct journal_options *o,
		 struct journal_recovery *rec, struct ava_error *err)
{
	struct journal *j = calloc(1, sizeof(*j));

	(void)err;
	assert(j != NULL && own->open_one == NULL);
	list_init(&j->waiting);
	list_init(&j->settled);
	j->notify = o->notify;
	j->user = o->user;
	j->lsn = own->durable_lsn;
	*rec = (struct journal_recovery){.clean = own->orderly, .problems = "[]"};
	own->orderly = false;
	*out = own->open_one = j;
	return 0;
}

uint64_t journal_lsn(struct journal *j, unsigned n)
{
	j->lsn += n;
	return j->lsn - n + 1;
}

static void copy_op(struct journal_op *to, const struct journal_op *op)
{
	char *bytes = malloc(op->len + 1);

	*to = *op;
	to->path = strdup(op->path);
	assert(bytes != NULL && to->path != NULL);
	if (op->len > 0)
		memcpy(bytes, op->bytes, op->len);
	to->bytes = bytes;
}

int journal_commit(struct journal *j, const struct journal_op *ops, unsigned n,
		   enum journal_level level, journal_done_fn done, void *user)
{
	struct batch *b = calloc(1, sizeof(*b));
	int64_t at = sim.now + (level == JOURNAL_NOW ? 0 : 2);

	(void)clockwork_touch();
	assert(b != NULL);
	b->ops = calloc(n, sizeof(*b->ops));
	assert(b->ops != NULL);
	for (unsigned i = 0; i < n; i++)
		copy_op(&b->ops[i], &ops[i]);
	b->n = n;
	b->lsn = j->lsn;
	b->done = done;
	b->user = user;
	if (!sim.dead && sim_maybe(ledger_temper.failing))
		b->rv = sim_maybe(500) ? AVA_EUNKNOWN : AVA_EFULL;
	list_add(&j->waiting, &b->node);
	at += sim_span(0, ledger_temper.usual_ms);
	if (sim_maybe(ledger_temper.slow))
		at += sim_span(100, 20000);
	j->last_at = MAX(j->last_at, at);
	sim_at(j->last_at, comes_true, j);
	return 0;
}

unsigned journal_drain(struct journal *j)
{
	unsigned n = 0;

	for (struct batch *b; (b = LIST_FIRST(&j->settled, struct batch, node)) != NULL; n++) {
		list_del(&b->node);
		if (b->done != NULL)
			b->done(b->rv, b->user);
		batch_free(b);
	}
	return n;
}

int journal_sync(struct journal *j)
{
	for (struct batch *b; (b = LIST_FIRST(&j->waiting, struct batch, node)) != NULL;)
		settle(j, b);
	journal_drain(j);
	return 0;
}

void journal_close(struct journal *j)
{
	while (!list_empty(&j->waiting) || !list_empty(&j->settled))
		journal_sync(j);
	sim_forget(j);
	own->orderly = !sim.dead;
	own->open_one = NULL;
	free(j);
}

int journal_checkpoint(struct journal *j, struct ava_error *err)
{
	(void)j;
	(void)err;
	return 0;
}

int journal_health(struct journal *j, struct ava_error *err)
{
	(void)j;
	err->text[0] = 0;
	return 0;
}

int journal_ready(struct journal *j, struct ava_error *err)
{
	return journal_health(j, err);
}

const char *journal_view_path(struct journal *j, const char *path, char *out, size_t size)
{
	(void)j;
	snprintf(out, size, "%s", path);
	return out;
}

void journal_stats(struct journal *j, struct journal_stats *out)
{
	*out = (struct journal_stats){.lsn = j->lsn + 1}; /* the next */
}
