/* The catalog's rows, folded; see past.h.
 *
 * The file is for this build on this machine: a head, the slots of the names, then the rows that
 * are kept whole and the requests of a day, with a checksum over all of it. */
#include "subagent/past.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "journal/files.h"
#include "journal/view.h"

#define PAST_PATH     "wal/catalog"
#define PAST_TEMP     PAST_PATH ".tmp"
#define TEXT_MAX      ((size_t)1 << 30)
#define REQUESTS_ROOM ((size_t)1 << 16)
#define NEWEST        64 /* rows: the next run of a chain stands that near its group's last end */

struct past_head {
	char magic[16];
	uint32_t size, crc; /* crc: CRC32C of the file but for itself */
	struct catalog_place upto;
	struct quotes quotes;
	struct spend spend;
	struct spends spends;
	struct nameset names;
	int64_t newest_ms;
	uint64_t total, settled, unread, rows, requests; /* rows, requests: their bytes */
};
#define PAST_MAGIC "ava catalog 2\n"

/* ---- rows */

static void past_drop(struct past_run *r)
{
	list_del(&r->node);
	catalog_row_fini(&r->spawn);
	catalog_row_fini(&r->end);
	free(r);
}

/* The newest requests, of a day before the newest row: the clock may be ahead. */
static int past_put_requests(const struct past *p, struct buf *out)
{
	const char *s = p->requests.data, *end = s ? s + p->requests.len : NULL;
	int64_t from = MIN(p->newest_ms, clock_wall_ms()) - REQUEST_AGE_MS;
	size_t n = 0, at = 0;

	for (; s < end; s += strlen(s) + 1)
		n++;
	for (s = p->requests.data; s < end; s += strlen(s) + 1)
		if (n - at++ <= REQUESTS_MAX && strtoll(s, NULL, 10) >= from)
			(void)buf_add(out, s, strlen(s) + 1);
	return buf_check(out);
}

static int past_request(struct past *p, const struct catalog_row *row)
{
	struct buf kept;
	int rv;

	p->newest_ms = MAX(p->newest_ms, row->started_ms);
	if (!row->request_id[0])
		return 0;
	(void)buf_addf(&p->requests, "%lld %s %s %s", (long long)row->started_ms, row->id,
		       row->trace_id, row->request_id);
	if (buf_add(&p->requests, "", 1) != 0)
		return AVA_ENOMEM;
	if (p->requests.len < p->requests_most)
		return 0;
	buf_init(&kept, TEXT_MAX);
	rv = past_put_requests(p, &kept);
	buf_fini(&p->requests);
	p->requests = kept;
	p->requests_most = 2 * kept.len + REQUESTS_ROOM;
	return rv;
}

static int past_spawn(struct past *p, struct catalog_row *row)
{
	struct past_run *r;

	if (past_request(p, row) != 0 || nameset_add(&p->names, row->id) != 0 ||
	    nameset_add(&p->names, row->trace_id) != 0)
		return AVA_ENOMEM;
	if (strmap_get(&p->by_id, row->id))
		return 0; /* of two spawn rows of a run the first counts */
	r = calloc(1, sizeof(*r));
	if (!r || strmap_put(&p->by_id, row->id, r) != 0) {
		free(r);
		return AVA_ENOMEM;
	}
	r->spawn = *row;
	*row = (struct catalog_row){0};
	r->seen = p->rows;
	list_add(&p->runs, &r->node);
	p->total++;
	return 0;
}

/* Drops ended runs of groups in which all have ended. */
static int past_drop_groups(struct past *p)
{
	struct nameset open = {0};
	int rv = 0;

	LIST_EACH (&p->runs, n, tmp) {
		const struct past_run *r = LIST_ENTRY(n, struct past_run, node);

		if (r->spawn.group_id[0] && (!r->end.id || r->seen + NEWEST > p->rows))
			rv = rv == 0 ? nameset_add(&open, r->spawn.group_id) : rv;
	}
	p->nended = 0;
	LIST_EACH (&p->runs, n, tmp) {
		struct past_run *r = LIST_ENTRY(n, struct past_run, node);

		if (rv == 0 && r->end.id && !nameset_has(&open, r->spawn.group_id))
			past_drop(r);
		else
			p->nended += r->end.id != NULL;
	}
	nameset_fini(&open);
	return rv;
}

static int past_end(struct past *p, struct catalog_row *row)
{
	struct past_run *r = strmap_del(&p->by_id, row->id);

	if (nameset_add(&p->names, row->id) != 0) /* the spawn row may be damaged */
		return AVA_ENOMEM;
	if (row->totals.calls > 0)
		quotes_add(&p->quotes, row->role, row->totals.duration_ms);
	spend_add(&p->spend, row->ended_ms, clock_wall_ms(), row->totals.cost_microusd,
		  row->totals.input_tokens + row->totals.output_tokens, row->totals.uncosted_calls);
	spends_add(&p->spends, p->settings, catalog_cwd(row), row->tags, row->ended_ms,
		   clock_wall_ms(), row->totals.cost_microusd);
	if (r && !row->group_id[0])
		past_drop(r);
	if (!r || !row->group_id[0])
		return 0;
	r->end = *row;
	*row = (struct catalog_row){0};
	r->seen = p->rows;
	p->nended++;
	return 0;
}

int past_add(struct past *p, struct catalog_row *row)
{
	p->rows++;
	return row->kind == CATALOG_END ? past_end(p, row) : past_spawn(p, row);
}

static int past_row(struct catalog_row *row, void *user)
{
	struct past *p = user;
	size_t before = p->nended;
	int rv = row ? past_add(p, row) : 0;

	p->unread += row == NULL;
	/* Each time as many have come as there were; of the rows that were kept all are here. */
	return rv == 0 && p->nended > before && before > NEWEST && (before & (before + 1)) == 0
		       ? past_drop_groups(p)
		       : rv;
}

/* ---- the file */

static void past_init(struct past *p, const struct settings *settings)
{
	*p = (struct past){.settings = settings};
	spends_init(&p->spends, settings);
	list_init(&p->runs);
	strmap_init(&p->by_id);
	buf_init(&p->requests, TEXT_MAX);
}

void past_fini(struct past *p)
{
	while (!list_empty(&p->runs))
		past_drop(LIST_FIRST(&p->runs, struct past_run, node));
	strmap_fini(&p->by_id);
	nameset_fini(&p->names);
	buf_fini(&p->requests);
}

static uint32_t past_crc(const struct past_head *h, const uint64_t *slots, const char *text)
{
	struct past_head own;
	uint32_t crc;

	memcpy(&own, h, sizeof(own)); /* with what stands between its members */
	own.crc = 0;
	own.names.slots = NULL;
	crc = crc32c(0, &own, sizeof(own));
	crc = crc32c(crc, slots, h->names.cap * sizeof(*slots));
	return crc32c(crc, text, h->rows + h->requests);
}

static bool past_head_read(int fd, struct past_head *h)
{
	struct stat st;

	return fd >= 0 && sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       sys_read_all(fd, h, sizeof(*h), 0) == 0 &&
	       memcmp(h->magic, PAST_MAGIC, sizeof(PAST_MAGIC)) == 0 && h->size == sizeof(*h) &&
	       h->names.cap < TEXT_MAX && h->rows < TEXT_MAX && h->requests < TEXT_MAX &&
	       (uint64_t)st.st_size ==
		       sizeof(*h) + h->names.cap * sizeof(uint64_t) + h->rows + h->requests;
}

/* The rows that were kept whole; what they add to the sums stands in the head. */
static int past_take_rows(struct past *p, const char *text, size_t len)
{
	struct catalog_row row;
	const char *line;
	size_t at = 0, n;
	int rv = 0;

	while (rv == 0 && jsonl_next(text, len, &at, &line, &n) == 1) {
		rv = catalog_parse(line, n, &row, NULL);
		if (rv == 0)
			rv = past_add(p, &row);
		catalog_row_fini(&row);
	}
	return rv;
}

static bool past_load(struct past *p, int fd, const struct past_head *h)
{
	size_t nslots = h->names.cap * sizeof(uint64_t), len = h->rows + h->requests;
	uint64_t *slots = malloc(nslots + 1);
	char *text = malloc(len + 1);
	bool good = slots && text && sys_read_all(fd, slots, nslots, sizeof(*h)) == 0 &&
		    sys_read_all(fd, text, len, (off_t)(sizeof(*h) + nslots)) == 0 &&
		    past_crc(h, slots, text) == h->crc && past_take_rows(p, text, h->rows) == 0;

	if (good) {
		nameset_fini(&p->names);
		p->names = h->names;
		p->names.slots = slots;
		slots = NULL;
		p->quotes = h->quotes;
		p->spend = h->spend;
		p->spends = h->spends;
		p->total = h->total;
		p->settled = h->settled;
		p->unread = h->unread;
		p->newest_ms = h->newest_ms;
		p->upto = h->upto;
		buf_reset(&p->requests);
		good = buf_add(&p->requests, text + h->rows, h->requests) == 0;
	}
	free(slots);
	free(text);
	return good;
}

int past_read(struct past *p, int rootfd, const struct settings *settings, bool whole, bool rested,
	      struct ava_error *err)
{
	int fd = whole ? -1 : files_open(rootfd, PAST_PATH, O_RDONLY), rv;
	struct past_head h;

	past_init(p, settings);
	p->kept = past_head_read(fd, &h) && h.spends.names == p->spends.names &&
		  catalog_holds(rootfd, &h.upto, rested) && past_load(p, fd, &h);
	files_close(&fd);
	if (!p->kept) {
		past_fini(p);
		past_init(p, settings);
	}
	rv = catalog_each(rootfd, &p->upto, NULL, past_row, p, err);
	if (rv == 0 && past_drop_groups(p) != 0)
		rv = AVA_ENOMEM;
	return rv;
}

static void past_write(const struct past *p, int rootfd)
{
	struct past_head h;
	size_t nslots = p->names.cap * sizeof(uint64_t);
	struct buf text;
	int fd = -1;

	buf_init(&text, TEXT_MAX);
	LIST_EACH (&p->runs, n, tmp) {
		const struct past_run *r = LIST_ENTRY(n, struct past_run, node);

		(void)catalog_encode(&text, &r->spawn);
		if (r->end.id)
			(void)catalog_encode(&text, &r->end);
	}
	memset(&h, 0, sizeof(h));
	memcpy(h.magic, PAST_MAGIC, sizeof(PAST_MAGIC));
	h.size = sizeof(h);
	h.upto = p->upto;
	h.quotes = p->quotes;
	h.spend = p->spend;
	h.spends = p->spends;
	h.names = p->names;
	h.names.slots = NULL;
	h.total = p->total;
	h.settled = p->settled;
	h.unread = p->unread;
	h.newest_ms = p->newest_ms;
	h.rows = text.len;
	if (past_put_requests(p, &text) == 0)
		fd = sys->openat(rootfd, PAST_TEMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	h.requests = text.len - h.rows;
	h.crc = past_crc(&h, p->names.slots, text.data);
	if (fd >= 0 && sys_write_all(fd, &h, sizeof(h), 0) == 0 &&
	    sys_write_all(fd, p->names.slots, nslots, sizeof(h)) == 0 &&
	    sys_write_all(fd, text.data, text.len, (off_t)(sizeof(h) + nslots)) == 0)
		(void)sys->renameat(rootfd, PAST_TEMP, rootfd, PAST_PATH);
	else if (fd >= 0)
		(void)sys->unlinkat(rootfd, PAST_TEMP, 0);
	files_close(&fd);
	buf_fini(&text);
}

void past_keep(int rootfd, const struct settings *settings, uint64_t behind, uint64_t settled)
{
	int fd = files_open(rootfd, PAST_PATH, O_RDONLY);
	char path[FILES_BUF];
	struct past_head h;
	struct past p;
	struct spends own;
	struct stat st;
	bool known = past_head_read(fd, &h);

	files_close(&fd);
	spends_init(&own, settings);
	known = known && own.names == h.spends.names;
	files_part_name(CATALOG_PATH, view_find_part(rootfd, CATALOG_PATH), path);
	if (sys->fstatat(rootfd, path, &st, 0) != 0 ||
	    (known && (uint64_t)st.st_ino == h.upto.inode &&
	     (uint64_t)st.st_size <=
		     h.upto.at +
			     (behind > 0 ? MAX(behind, h.names.cap * sizeof(uint64_t) / 2) : 0)))
		return;
	if (past_read(&p, rootfd, settings, false, false, NULL) == 0) {
		p.settled = settled > 0 ? settled : p.settled;
		past_write(&p, rootfd);
	}
	past_fini(&p);
}
