/* Reading logs without a daemon: ava_log_* of ava.h.
 *
 * Happy path: the feed has place and kind of each line (index.h). Chunk by chunk, in the order
 * of lsn, rows are matched with the question; matching ones are gathered into a batch, whose
 * lines are fetched (fetch.h) and given in the order of lsn. The log of one run has a feed of
 * its own, made in memory from the file each time. "The last N" looks from the newest chunk
 * backwards for the lsn to begin behind. Following looks at the files again whenever everything
 * is given; inotify, or a look every 200 ms, says when.
 *
 * What can fail: a line that is no event, or not the one its row describes, comes out as
 * AVA_ECORRUPT with its place, and reading goes on; the latter makes the next question build the
 * index anew. Without inotify following is slower, never wrong. */
#include "journal/read.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/fetch.h"
#include "journal/files.h"

#define RESCAN_MS    1000
#define POLL_MS      200
#define COPIES       256
#define CHANGED      256
#define STREAM_FIRST ((uint64_t)1 << 20)   /* bytes of a first batch, which a slow reader holds */
#define FIRST_BATCH  ((uint64_t)16 << 20)  /* bytes of a first batch for which a reader waits */
#define BATCH        ((uint64_t)32 << 20)  /* bytes of lines in a later batch where all are kept */
#define TEXT_BATCH   ((uint64_t)256 << 20) /* bytes of lines in any batch where a text leaves few */
#define SEARCH_LEAST 16                    /* with fewer files none is left out by its text */
#define DAY_MS       INT64_C(86400000)

struct ava_log {
	int rootfd, inotify;
	int days_wd, runs_wd; /* inotify's numbers of the folders; -1: not watched */
	char run[24];         /* the run that is read; "": days */
	bool everything, follow, begun;
	struct query want;
	struct log_index *feed;
	uint8_t *who_fits, *file_fits; /* owned; who of the index fit; files of the index fit */
	uint8_t *text_fits;            /* owned; files with the text; NULL: no search was made */
	size_t nwho_fits, nfile_fits;
	bool who_asked, all_fit; /* all_fit: no file is left out */
	struct ordered {
		uint64_t lsn;
		size_t chunk;
	} * order; /* owned; chunks in the order of their least lsn */
	size_t norder, order_cap, next;
	struct hit *hits; /* owned; [from, nhits) wait, in order; [0, from) are the batch */
	size_t from, nhits, hits_cap;
	uint64_t waiting;        /* bytes of the waiting lines */
	struct fetch fetch;      /* lines of the batch */
	size_t given;            /* hits of the batch that are done with */
	size_t amiss;            /* next torn file of the feed to report */
	uint64_t copied;         /* lsn of the last given event that may have a copy */
	uint64_t copies[COPIES]; /* the last COPIES such lsn, when following */
	unsigned ncopies;
	long changed[CHANGED]; /* files written to while following */
	size_t nchanged;
	bool look_all;
	read_progress_fn progress; /* NULL: no progress wanted */
	void *progress_user;
	uint64_t done, total;
};

/* ---- which rows */

static bool id_fits(const struct query_id *id, const struct log_index *f, uint32_t at)
{
	return index_string_len(f, at) == id->len &&
	       memcmp(index_string(f, at), id->text, id->len) == 0;
}

static bool who_fits(const struct query *q, const struct log_index *f, const struct index_who *w)
{
	return (q->agent.len == 0 || id_fits(&q->agent, f, w->agent) ||
		id_fits(&q->agent, f, w->trace)) &&
	       (q->session.len == 0 || id_fits(&q->session, f, w->session)) &&
	       (q->user.len == 0 || id_fits(&q->user, f, w->user));
}

/* A day's file has no event from a later day: the clock may be set back under it, never forward.
 * Two days more allow for where its day began. */
static bool too_old(const struct query *q, const char *path)
{
	char iso[CLOCK_ISO_LEN + 1];
	int64_t day;

	snprintf(iso, sizeof(iso), "%.10sT00:00:00.000Z", path + sizeof(INDEX_DAYS));
	day = clock_parse_iso(iso, CLOCK_ISO_LEN);
	return day >= 0 && day + 3 * DAY_MS < q->since_ms;
}

static bool file_fits(const struct ava_log *log, const struct index_file *file)
{
	if ((file->flags & INDEX_GONE) != 0)
		return false;
	if ((file->flags & INDEX_IS_DAY) == 0)
		return log->everything || log->run[0] != '\0';
	return !too_old(&log->want, index_string(log->feed, file->path));
}

/* Match the ids and files that were added since. */
static int refresh_fits(struct ava_log *log, struct ava_error *err)
{
	const struct log_index *f = log->feed;
	uint8_t *who = realloc(log->who_fits, f->nwhos + 1);
	uint8_t *file;

	if (who != NULL)
		log->who_fits = who;
	file = realloc(log->file_fits, f->nfiles + 1);
	if (file != NULL)
		log->file_fits = file;
	if (who == NULL || file == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to read logs");
	for (; log->who_asked && log->nwho_fits < f->nwhos; log->nwho_fits++)
		who[log->nwho_fits] = who_fits(&log->want, f, &f->whos[log->nwho_fits]);
	log->all_fit = true;
	for (log->nfile_fits = 0; log->nfile_fits < f->nfiles; log->nfile_fits++) {
		file[log->nfile_fits] = file_fits(log, &f->files[log->nfile_fits]);
		log->all_fit = log->all_fit && file[log->nfile_fits] != 0;
	}
	return 0;
}

int read_select(struct ava_log *log, size_t chunk, uint16_t rows[INDEX_CHUNK], size_t *n,
		struct ava_error *err)
{
	const struct query *q = &log->want;
	const struct index_chunk *c = &log->feed->chunks[chunk];
	const uint64_t broken = UINT64_C(1) << INDEX_BROKEN;
	uint64_t mask = q->types != 0 ? q->types : ~UINT64_C(0);
	const uint8_t *kind;
	const int64_t *time = NULL;
	const uint64_t *lsn = NULL;
	const uint32_t *who = NULL, *file = NULL;
	bool sound, whole;

	*n = 0;
	if (c->time_max < q->since_ms || c->time_min >= q->until_ms)
		mask = 0;
	mask |= broken;
	if ((c->kinds & mask) == 0 || (q->after != 0 && c->lsn_max <= q->after))
		return 0;
	kind = index_column(log->feed, chunk, INDEX_KIND);
	sound = kind != NULL;
	if (!log->all_fit || log->text_fits != NULL) {
		file = index_column(log->feed, chunk, INDEX_FILE);
		sound = sound && file != NULL;
	}
	if (c->time_min < q->since_ms || c->time_max >= q->until_ms) {
		time = index_column(log->feed, chunk, INDEX_TIME);
		sound = sound && time != NULL;
	}
	if (q->after != 0 && c->lsn_min <= q->after) {
		lsn = index_column(log->feed, chunk, INDEX_LSN);
		sound = sound && lsn != NULL;
	}
	if (log->who_asked) {
		who = index_column(log->feed, chunk, INDEX_WHO);
		sound = sound && who != NULL;
	}
	if (!sound)
		return err_set(err, AVA_ECORRUPT,
			       INDEX_HEAD ": it is damaged, and made anew by the next question");
	whole = (c->kinds & ~mask) == 0 && file == NULL && lsn == NULL && time == NULL &&
		who == NULL;
	for (size_t i = 0; whole && i < c->n; i++)
		rows[i] = (uint16_t)i;
	*n = whole ? c->n : 0;
	for (size_t i = 0; !whole && i < c->n; i++) {
		if ((mask >> (kind[i] & 63) & 1) == 0 ||
		    (file != NULL &&
		     (file[i] >= log->nfile_fits || log->file_fits[file[i]] == 0)) ||
		    (lsn != NULL && lsn[i] <= q->after))
			continue;
		if (kind[i] != INDEX_BROKEN &&
		    ((log->text_fits != NULL && log->text_fits[file[i]] == 0) ||
		     (time != NULL && (time[i] < q->since_ms || time[i] >= q->until_ms)) ||
		     (who != NULL && (who[i] >= log->nwho_fits || log->who_fits[who[i]] == 0))))
			continue;
		rows[(*n)++] = (uint16_t)i;
	}
	return 0;
}

/* For a pure text search leave out files without the text first: only rows of the others are
 * looked at. */
static void search_files(struct ava_log *log)
{
	const struct query *q = &log->want;

	free(log->text_fits);
	log->text_fits = NULL;
	if (q->text.needle == NULL || log->follow || log->feed->nfiles < SEARCH_LEAST ||
	    q->types != 0 || log->who_asked || q->since_ms != INT64_MIN ||
	    q->until_ms != INT64_MAX || q->after != 0)
		return;
	log->text_fits = malloc(log->nfile_fits + 1);
	if (log->text_fits == NULL)
		return;
	memcpy(log->text_fits, log->file_fits, log->nfile_fits);
	fetch_search(&log->fetch, log->feed, log->text_fits);
}

/* ---- waiting hits */

static int hit_order(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	int order = order_of(x->lsn, y->lsn);

	order = order != 0 ? order : order_of(x->file, y->file);
	return order != 0 ? order : order_of(x->offset, y->offset);
}

/* Add the hits of a chunk to the waiting ones. */
static int read_gather(struct ava_log *log, size_t chunk, struct ava_error *err)
{
	uint16_t rows[INDEX_CHUNK];
	const uint64_t *lsn, *offset;
	const uint32_t *len, *file;
	const uint8_t *kind;
	size_t n;
	bool sorted = true;
	int rv = read_select(log, chunk, rows, &n, err);

	if (rv != 0 || n == 0)
		return rv;
	kind = index_column(log->feed, chunk, INDEX_KIND);
	lsn = index_column(log->feed, chunk, INDEX_LSN);
	offset = index_column(log->feed, chunk, INDEX_OFFSET);
	len = index_column(log->feed, chunk, INDEX_LEN);
	file = index_column(log->feed, chunk, INDEX_FILE);
	if (lsn == NULL || offset == NULL || len == NULL || file == NULL)
		return err_set(err, AVA_ECORRUPT,
			       INDEX_HEAD ": it is damaged, and made anew by the next question");
	if (!ARRAY_ROOM(log->hits, log->hits_cap, log->nhits + n))
		return err_set(err, AVA_ENOMEM, "no memory to read logs");
	for (size_t k = 0; k < n; k++) {
		size_t i = rows[k];
		struct hit *h;

		if (file[i] >= log->nfile_fits) /* no sound index has such a file */
			continue;
		h = &log->hits[log->nhits++];
		*h = (struct hit){.lsn = lsn[i],
				  .offset = offset[i],
				  .len = len[i],
				  .file = file[i],
				  .chunk = (uint32_t)chunk,
				  .row = (uint16_t)i,
				  .kind = kind[i]};
		log->waiting += h->len;
		sorted = sorted && (log->nhits - 1 == log->from || hit_order(h - 1, h) < 0);
	}
	index_release(log->feed, chunk);
	if (!sorted)
		qsort(log->hits + log->from, log->nhits - log->from, sizeof(*log->hits), hit_order);
	return 0;
}

/* ---- the order */

static int chunk_order(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;
	int order = order_of(x->lsn, y->lsn);

	return order != 0 ? order : order_of(x->chunk, y->chunk);
}

/* Put new chunks behind the known ones, in the order of lsn among themselves. */
static int order_chunks(struct ava_log *log, struct ava_error *err)
{
	size_t n = log->feed->nchunks, first = log->norder;

	if (!ARRAY_ROOM(log->order, log->order_cap, n + 1))
		return err_set(err, AVA_ENOMEM, "no memory to read logs");
	for (; log->norder < n; log->norder++)
		log->order[log->norder] =
			(struct ordered){log->feed->chunks[log->norder].lsn_min, log->norder};
	if (n > first)
		qsort(log->order + first, n - first, sizeof(*log->order), chunk_order);
	return refresh_fits(log, err);
}

int read_anew(struct ava_log *log, struct ava_error *err)
{
	struct log_index *anew;
	int rv = index_open(&anew, log->rootfd, log->everything ? INDEX_OF_ALL : INDEX_OF_DAYS,
			    NULL, &log->want, true, err);

	if (rv != 0)
		return rv;
	index_close(log->feed);
	log->feed = anew;
	log->nwho_fits = log->norder = log->next = log->from = log->nhits = log->given = 0;
	log->waiting = log->done = 0;
	log->feed->follow = log->follow;
	rv = order_chunks(log, err);
	search_files(log);
	return rv;
}

/* Hits below this lsn are all gathered. */
static uint64_t settled_lsn(const struct ava_log *log)
{
	return log->next < log->norder ? log->order[log->next].lsn : UINT64_MAX;
}

/* The next batch: 1; 0: nothing waits. */
static int next_batch(struct ava_log *log, struct ava_error *err)
{
	bool text = log->want.text.needle != NULL || log->want.text.regex != NULL;
	/* A reader of everything may be slow, and holds the fetched lines meanwhile. */
	bool stream = log->everything && log->want.types == 0 && !log->who_asked &&
		      log->want.since_ms == INT64_MIN;
	uint64_t first = stream ? STREAM_FIRST : FIRST_BATCH, bytes = 0;
	uint64_t limit = text ? TEXT_BATCH : log->begun ? BATCH : first;
	size_t n = 0;
	int rv;

	if (log->from > 0)
		memmove(log->hits, log->hits + log->from,
			(log->nhits - log->from) * sizeof(*log->hits));
	log->nhits -= log->from;
	log->from = log->given = 0;
	while (log->next < log->norder &&
	       (log->waiting < limit || log->hits[0].lsn >= settled_lsn(log))) {
		size_t chunk = log->order[log->next++].chunk;

		log->done += log->feed->chunks[chunk].bytes;
		rv = read_gather(log, chunk, err);
		if (rv == AVA_ECORRUPT && !log->begun && log->run[0] == '\0')
			rv = read_anew(log, err);
		if (rv != 0) {
			if (rv == AVA_ECORRUPT)
				index_forget(log->rootfd);
			return rv;
		}
	}
	while (n < log->nhits && log->hits[n].lsn < settled_lsn(log) && bytes < limit)
		bytes += log->hits[n++].len;
	if (n == 0)
		return 0;
	log->from = n;
	rv = fetch_lines(&log->fetch, log->feed, log->hits, n, err);
	log->waiting -= bytes;
	log->begun = true;
	if (log->progress != NULL)
		log->progress(log->done, log->total, log->progress_user);
	return rv == 0 ? 1 : rv;
}

/* ---- giving */

static int read_damaged(const char *path, const struct hit *h, struct ava_error *err)
{
	if (h->len > INDEX_LINE)
		return err_set(err, AVA_ECORRUPT, "%s:%llu: a line of more than %zu MB", path,
			       (unsigned long long)h->offset, INDEX_LINE >> 20);
	return err_set(err, AVA_ECORRUPT, "%s:%llu: this line (%zu bytes) is not an event", path,
		       (unsigned long long)h->offset, (size_t)h->len);
}

static const char *read_path_of(const struct ava_log *log, uint32_t file)
{
	return index_string(log->feed, log->feed->files[file].path);
}

/* Report a hit that is no line. 0: nothing to report. */
static int read_tell(struct ava_log *log, const struct hit *h, enum got_state state,
		     struct ava_error *err)
{
	const char *path = read_path_of(log, h->file);

	switch (state) {
	case GOT_LINE:
	case GOT_NOTHING:
		return 0;
	case GOT_BROKEN:
		return read_damaged(path, h, err);
	case GOT_OTHER:
		index_forget(log->rootfd);
		return err_set(err, AVA_ECORRUPT,
			       "%s:%llu: this is not the line that the index tells of: somebody "
			       "changed the log; the next question makes the index anew",
			       path, (unsigned long long)h->offset);
	case GOT_GONE: /* a file that is gone is told once and left out from then on */
		if ((log->feed->files[h->file].flags & INDEX_GONE) != 0)
			return 0;
		log->feed->files[h->file].flags |= INDEX_GONE;
		return err_set(err, AVA_ECORRUPT,
			       "%s is not there any more: it was pruned, or removed, while it was "
			       "read",
			       path);
	case GOT_COSTLY:
		return err_set(err, AVA_ETOOBIG,
			       "%s:%llu: the expression takes too long on this line: make it "
			       "simpler",
			       path, (unsigned long long)h->offset);
	case GOT_UNREAD:
		return err_set(err, AVA_EIO, "%s:%llu: this line cannot be read", path,
			       (unsigned long long)h->offset);
	}
	return 0;
}

/* Is the hit the second copy of an event, with the same lsn, in another file? When following,
 * other events may come between. Two of a kind outside INDEX_COPIED with one lsn are two: a
 * damaged log must not lose any. */
static bool is_copy(struct ava_log *log, const struct hit *h)
{
	if (!log->everything || (INDEX_COPIED >> (h->kind & 63) & 1) == 0)
		return false;
	if (h->lsn == log->copied)
		return true;
	log->copied = h->lsn;
	if (!log->follow)
		return false;
	for (unsigned i = 0; i < COPIES; i++)
		if (log->copies[i] == h->lsn)
			return true;
	log->copies[log->ncopies++ % COPIES] = h->lsn;
	return false;
}

static void fill_event(const struct ava_log *log, const struct hit *h, const struct got *got,
		       struct ava_log_event *e)
{
	const char *line = log->fetch.kept[got->thread].data + got->at;
	struct event_view v;

	*e = (struct ava_log_event){
		.lsn = h->lsn,
		.seq = got->seq,
		.time_ms = got->wall_ms,
		.line = line,
		.len = h->len,
		.file = read_path_of(log, h->file),
		.offset = h->offset,
	};
	if (h->kind < EVENT_NKINDS)
		snprintf(e->type, sizeof(e->type), "%s", event_kind_name((enum event_kind)h->kind));
	else if (event_view(line, h->len, &v) == 0)
		snprintf(e->type, sizeof(e->type), "%.*s",
			 (int)MIN(v.type.len, sizeof(e->type) - 1), v.type.s);
}

static int read_left_out(struct ava_log *log, const struct index_torn *t, struct ava_error *err)
{
	const char *path = read_path_of(log, t->file);
	struct stat st;

	if (sys->fstatat(log->feed->rootfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !files_is_file(&st))
		return err_set(err, AVA_ECORRUPT,
			       "%s is left out: it is not a regular file, move what stands there "
			       "away",
			       path);
	return err_set(err, AVA_ECORRUPT, "%s is left out: it cannot be read (%s)", path,
		       ava_strerror(-(int)t->at));
}

int read_amiss(struct ava_log *log, struct ava_error *err)
{
	struct log_index *f = log->feed;

	if (f->first_gone) {
		f->first_gone = false;
		return err_set(err, AVA_ECORRUPT,
			       INDEX_RUNS "/%s.jsonl is missing: somebody removed it (what the "
					  "journal still had of it is in lost/)",
			       log->run);
	}
	while (log->amiss < f->ntorn) {
		const struct index_torn *t = &f->torn[log->amiss++];

		if (log->file_fits[t->file] == 0)
			continue;
		if (t->len == UINT32_MAX)
			return read_left_out(log, t, err);
		if (!log->follow)
			return err_set(err, AVA_ECORRUPT,
				       "%s:%llu: the last line (%zu bytes) was never finished",
				       read_path_of(log, t->file), (unsigned long long)t->at,
				       (size_t)t->len);
	}
	return 0;
}

/* With everything given, look for new lines. */
static int read_look(struct ava_log *log, struct ava_error *err)
{
	int rv = 0;

	if (log->next == log->norder && log->nhits == log->from && log->norder > 0) {
		index_consumed(log->feed);
		log->norder = log->next = 0;
	}
	if (log->look_all || !log->everything) {
		rv = index_look(log->feed, -1, err);
		log->amiss = 0;
	}
	for (size_t i = 0; rv == 0 && i < log->nchanged; i++)
		rv = index_look(log->feed, log->changed[i], err);
	if (rv == 0) {
		log->look_all = false;
		log->nchanged = 0;
	}
	return order_chunks(log, rv == 0 ? err : NULL) != 0 && rv == 0 ? AVA_ENOMEM : rv;
}

int ava_log_next(struct ava_log *log, struct ava_log_event *event, struct ava_error *err)
{
	bool looked = false;
	int rv;

	if (log->feed->first_gone)
		return read_amiss(log, err);
	for (;;) {
		while (log->given < log->from) {
			const struct hit *h = &log->hits[log->given];
			const struct got *got = &log->fetch.got[log->given++];

			rv = read_tell(log, h, (enum got_state)got->state, err);
			if (rv != 0)
				return rv;
			if (got->state != GOT_LINE || is_copy(log, h))
				continue;
			fill_event(log, h, got, event);
			return 1;
		}
		rv = next_batch(log, err);
		if (rv < 0)
			return rv;
		if (rv > 0)
			continue;
		rv = read_amiss(log, err);
		if (rv != 0 || !log->follow)
			return rv;
		if (looked)
			return 0;
		looked = true;
		rv = read_look(log, err);
		if (rv != 0)
			return rv;
	}
}

/* ---- the last N */

static int lsn_down(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return order_of(y, x);
}

static int newest_order(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	return order_of(y->lsn, x->lsn);
}

/* Look from the newest chunk backwards for the beginning of the last n, and ask for events
 * behind the lsn before it. */
static int plan_last(struct ava_log *log, uint64_t n, struct ava_error *err)
{
	size_t nchunks = log->feed->nchunks, have = 0, kept;
	struct ordered *newest = calloc(nchunks + 1, sizeof(*newest));
	uint64_t *found = NULL, *grown;
	int rv = newest == NULL ? AVA_ENOMEM : 0;

	for (size_t i = 0; i < nchunks && rv == 0; i++)
		newest[i] = (struct ordered){log->feed->chunks[i].lsn_max, i};
	if (rv == 0)
		qsort(newest, nchunks, sizeof(*newest), newest_order);
	for (size_t i = 0; i < nchunks && rv == 0; i++) {
		if (have >= n && newest[i].lsn < found[have - 1])
			break;
		log->nhits = log->from = 0;
		rv = read_gather(log, newest[i].chunk, err);
		if (rv == 0 && log->nhits > 0 &&
		    (log->want.text.needle != NULL || log->want.text.regex != NULL))
			rv = fetch_lines(&log->fetch, log->feed, log->hits, log->nhits, err);
		else
			log->fetch.npieces = 0;
		grown = rv == 0 ? realloc(found, (have + log->nhits + 1) * sizeof(*grown)) : NULL;
		if (grown == NULL)
			break;
		found = grown;
		for (size_t k = 0; k < log->nhits; k++)
			if (log->hits[k].kind != INDEX_BROKEN &&
			    (log->fetch.npieces == 0 || log->fetch.got[k].state == GOT_LINE))
				found[have++] = log->hits[k].lsn;
		/* Keep the n greatest, each once. */
		qsort(found, have, sizeof(*found), lsn_down);
		kept = 0;
		for (size_t k = 0; k < have && kept < n; k++)
			if (kept == 0 || found[k] != found[kept - 1])
				found[kept++] = found[k];
		have = kept;
	}
	if (rv == 0 && have >= n)
		log->want.after = MAX(log->want.after, found[n - 1] - 1);
	log->nhits = log->from = 0;
	log->waiting = 0;
	free(newest);
	free(found);
	return rv == AVA_ENOMEM ? err_set(err, rv, "no memory to read logs") : rv;
}

/* ---- open, wait, close */

static int open_root(struct ava_log *log, const char *root, struct ava_error *err)
{
	char path[4096];
	int rv;

	if (root == NULL) {
		rv = settings_data_root(path, sizeof(path), err);
		if (rv != 0)
			return rv;
		root = path;
	}
	log->rootfd = read_open_root(root, err);
	if (log->rootfd < 0)
		return log->rootfd;
	return read_check_format(log->rootfd, err);
}

static bool watch_path(const struct ava_log *log, const char *path, uint32_t what, int *wd)
{
	char link[160];

	snprintf(link, sizeof(link), "/proc/self/fd/%d/%s", log->rootfd, path);
	*wd = inotify_add_watch(log->inotify, link, what);
	return *wd >= 0;
}

static void start_watching(struct ava_log *log)
{
	const uint32_t folder = IN_CREATE | IN_MOVED_TO | IN_MODIFY;
	int wd;

	log->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	log->days_wd = log->runs_wd = -1;
	if (log->inotify < 0)
		return;
	if (log->run[0] != '\0') { /* without a watch the files are looked at every RESCAN_MS */
		for (size_t i = 0; i < log->feed->nfiles; i++)
			watch_path(log, read_path_of(log, (uint32_t)i), IN_MODIFY, &wd);
		return;
	}
	if (watch_path(log, INDEX_DAYS, folder, &log->days_wd) &&
	    (!log->everything || watch_path(log, INDEX_RUNS, folder, &log->runs_wd)))
		return;
	close(log->inotify); /* a folder is missing yet: look every POLL_MS */
	log->inotify = -1;
}

static int check_query(const struct ava_log_query *q, struct ava_error *err)
{
	if (q->run != NULL && !id_is_run(q->run))
		return err_set(err, AVA_EINVAL, "\"%.40s\" is not a run id (S-...)", q->run);
	return 0;
}

/* No file at all. The days of Ava may come during the wait, a run's file does not: it begins
 * with the spawn. */
static int read_check_files(const struct ava_log *log, struct ava_error *err)
{
	for (size_t i = 0; i < log->feed->nfiles; i++)
		if (log->file_fits[i] != 0 ||
		    (log->feed->files[i].flags & (INDEX_GONE | INDEX_IS_DAY)) == INDEX_IS_DAY)
			return 0;
	if (log->run[0] != '\0')
		return err_set(err, AVA_ENOENT, "there is no log of %s", log->run);
	return log->follow ? 0 : err_set(err, AVA_ENOENT, "nothing has been logged yet");
}

int read_check(const struct ava_log_query *q, struct ava_error *err)
{
	struct query want;
	int rv = check_query(q, err);

	if (rv != 0)
		return rv;
	rv = query_init(&want, q, clock_wall_ms(), err);
	query_fini(&want);
	return rv;
}

static int log_open(struct ava_log **out, const struct ava_log_query *q, bool near,
		    struct ava_error *err)
{
	struct ava_log *log = NULL;
	int rv = check_query(q, err);

	*out = NULL;
	if (rv != 0)
		goto fail;
	log = calloc(1, sizeof(*log));
	if (log == NULL) {
		rv = err_set(err, AVA_ENOMEM, "no memory to read logs");
		goto fail;
	}
	log->rootfd = log->inotify = -1;
	fetch_init(&log->fetch, &log->want);
	log->follow = q->follow != 0;
	log->everything = q->everything != 0 && q->run == NULL;
	snprintf(log->run, sizeof(log->run), "%s", q->run != NULL ? q->run : "");
	rv = query_init(&log->want, q, clock_wall_ms(), err);
	log->want.near = near;
	log->who_asked = rv == 0 && (log->want.agent.len > 0 || log->want.session.len > 0 ||
				     log->want.user.len > 0);
	if (rv == 0)
		rv = open_root(log, q->root, err);
	if (rv == 0)
		rv = index_open(&log->feed, log->rootfd,
				log->run[0] != '\0' ? INDEX_OF_RUN
				: log->everything   ? INDEX_OF_ALL
						    : INDEX_OF_DAYS,
				log->run, &log->want, false, err);
	if (rv == 0)
		rv = order_chunks(log, err);
	if (rv == 0)
		rv = read_check_files(log, err);
	if (rv == 0)
		search_files(log);
	if (rv == 0 && q->last > 0) {
		rv = plan_last(log, q->last, err);
		if (rv == AVA_ECORRUPT && log->run[0] == '\0') {
			rv = read_anew(log, err);
			rv = rv == 0 ? plan_last(log, q->last, err) : rv;
		}
	}
	if (rv != 0)
		goto fail;
	log->feed->follow = log->follow;
	log->look_all = true;
	if (log->follow)
		start_watching(log);
	*out = log;
	return 0;

fail:
	ava_log_close(log);
	return rv;
}

int ava_log_open(struct ava_log **out, const struct ava_log_query *q, struct ava_error *err)
{
	return log_open(out, q, false, err);
}

int read_open_near(struct ava_log **out, const struct ava_log_query *q, struct ava_error *err)
{
	return log_open(out, q, true, err);
}

/* Read inotify's events. False: some may be missing. */
static bool take_changes(struct ava_log *log)
{
	char bytes[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *e;
	char path[FILES_BUF];
	bool all = true;
	ssize_t n;

	while ((n = read(log->inotify, bytes, sizeof(bytes))) > 0)
		for (char *p = bytes; p < bytes + n; p += sizeof(*e) + e->len) {
			long file = -1;
			bool known = false;

			e = (const struct inotify_event *)(void *)p;
			if (e->len > 0 && (e->mask & IN_MODIFY) != 0) {
				snprintf(path, sizeof(path), "%s/%.*s",
					 e->wd == log->days_wd ? INDEX_DAYS : INDEX_RUNS,
					 FILES_NAME_MAX, e->name);
				file = index_find_file(log->feed, path);
			}
			for (size_t i = 0; i < log->nchanged; i++)
				known = known || log->changed[i] == file;
			all = all && file >= 0 && (known || log->nchanged < CHANGED);
			if (all && !known)
				log->changed[log->nchanged++] = file;
		}
	return all;
}

int ava_log_wait(struct ava_log *log, int timeout_ms)
{
	int limit = log->inotify >= 0 ? RESCAN_MS : POLL_MS;
	struct pollfd p = {.fd = log->inotify, .events = POLLIN};
	int n;

	if (timeout_ms >= 0 && timeout_ms < limit)
		limit = timeout_ms;
	n = poll(&p, log->inotify >= 0 ? 1 : 0, limit);
	if (n <= 0 || !take_changes(log))
		log->look_all = true;
	return n >= 0 && (n > 0 || limit != timeout_ms);
}

struct log_index *read_index(struct ava_log *log)
{
	return log->feed;
}

const struct query *read_query(const struct ava_log *log)
{
	return &log->want;
}

void read_row(const struct ava_log *log, size_t *chunk, size_t *row)
{
	*chunk = log->hits[log->given - 1].chunk;
	*row = log->hits[log->given - 1].row;
}

int read_broken(struct ava_log *log, size_t chunk, size_t row, struct ava_error *err)
{
	const uint64_t *offset = index_column(log->feed, chunk, INDEX_OFFSET);
	const uint32_t *len = index_column(log->feed, chunk, INDEX_LEN);
	const uint32_t *file = index_column(log->feed, chunk, INDEX_FILE);
	struct hit h = {0};

	if (offset == NULL || len == NULL || file == NULL)
		return err_set(err, AVA_ECORRUPT, INDEX_HEAD ": it is damaged");
	h.offset = offset[row];
	h.len = len[row];
	return read_damaged(read_path_of(log, file[row]), &h, err);
}

void read_progress(struct ava_log *log, read_progress_fn fn, void *user)
{
	log->progress = fn;
	log->progress_user = user;
	log->total = 0;
	for (size_t i = 0; i < log->feed->nchunks; i++)
		log->total += log->feed->chunks[i].bytes;
}

void ava_log_close(struct ava_log *log)
{
	if (log == NULL)
		return;
	index_close(log->feed);
	query_fini(&log->want);
	free(log->who_fits);
	free(log->text_fits);
	free(log->file_fits);
	free(log->order);
	free(log->hits);
	fetch_fini(&log->fetch);
	if (log->inotify >= 0)
		close(log->inotify);
	if (log->rootfd >= 0)
		sys->close(log->rootfd);
	free(log);
}

int read_reindex(const char *root, uint64_t *events, uint64_t *files, struct ava_error *err)
{
	int rootfd = read_open_root(root, err);
	struct log_index *f;
	int rv = rootfd < 0 ? rootfd : read_check_format(rootfd, err);

	if (rv == 0)
		rv = index_open(&f, rootfd, INDEX_OF_ALL, NULL, NULL, true, err);
	if (rv == 0) {
		*events = 0;
		*files = f->nfiles;
		for (size_t i = 0; i < f->nchunks; i++)
			*events += f->chunks[i].n;
		if (f->in_memory)
			rv = err_set(err, AVA_EIO, "the index could not be stored");
		index_close(f);
	}
	if (rootfd >= 0)
		sys->close(rootfd);
	return rv;
}
