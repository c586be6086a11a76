/* The ledger: rows that say which notice is settled for which channel, beside
 * the daily logs that say what notices there are. doc/DELIVERY.md is the form.
 *
 * Happy path of a start: every row of every file is read, the daily logs are
 * read from the newest base on, what no row settles is open; then the next file
 * begins with it, in one commit, and when that is on disk the older files go.
 * Rows are facts, so that files that a crash left side by side say no more
 * than one of them would.
 *
 * What can fail: a file that cannot be read (logged; its notices come again),
 * memory (the start fails). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery_state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "subagent/logbook.h"

#define LEDGER_MAX     (256u << 20)
#define FILES_MAX      64
#define LOST_LEDGER_MS 86400000LL /* what is taken as open when no base is left */

struct fact { /* of one notice */
	uint64_t lsn;
	unsigned settled, attempts;
};

struct base { /* of the newest file that has one */
	bool found, notify;
	unsigned generation;
	uint64_t lsn;
	int64_t wall_ms;
};

struct reading {
	struct delivery *d;
	char names[FILES_MAX][48];
	unsigned nnames, generation, newest; /* generation: of the file being read */
	struct fact *facts;
	size_t nfacts, cap;
	struct base base;
	struct list items; /* of item rows of the newest base */
	bool no_memory;
	const char *wrong; /* a sentence; NULL */
};

/* ---- facts */

static void add_fact(struct reading *r, uint64_t lsn, unsigned settled, unsigned attempts)
{
	if (r->nfacts == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 256;
		struct fact *grown = realloc(r->facts, cap * sizeof(*grown));

		if (!grown) {
			r->no_memory = true;
			return;
		}
		r->facts = grown;
		r->cap = cap;
	}
	r->facts[r->nfacts++] = (struct fact){lsn, settled, attempts};
}

static int by_lsn(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;

	return x->lsn < y->lsn ? -1 : x->lsn > y->lsn;
}

/* One fact a notice. */
static void join_facts(struct reading *r)
{
	size_t n = 0;

	if (r->nfacts > 0)
		qsort(r->facts, r->nfacts, sizeof(*r->facts), by_lsn);
	for (size_t i = 0; i < r->nfacts; i++) {
		const struct fact f = r->facts[i];

		if (n == 0 || r->facts[n - 1].lsn != f.lsn) {
			r->facts[n++] = f;
			continue;
		}
		r->facts[n - 1].settled |= f.settled;
		r->facts[n - 1].attempts = MAX(r->facts[n - 1].attempts, f.attempts);
	}
	r->nfacts = n;
}

static void apply_facts(const struct reading *r, struct item *it)
{
	const struct fact key = {.lsn = it->lsn};
	const struct fact *f =
		r->nfacts > 0 ? bsearch(&key, r->facts, r->nfacts, sizeof(*r->facts), by_lsn)
			      : NULL;

	if (!f)
		return;
	it->open &= ~f->settled;
	it->attempts = MAX(it->attempts, f->attempts);
}

/* ---- rows */

static unsigned channels_of(const json_t *row)
{
	const json_t *list = json_object_get(row, "channels"), *v;
	unsigned bits = 0;
	size_t i;

	json_array_foreach(list, i, v)
	{
		bits |= json_is_string(v) ? delivery_channel(json_string_value(v)) : 0;
	}
	return bits;
}

static void drop_items(struct reading *r)
{
	while (!list_empty(&r->items))
		item_free(LIST_FIRST(&r->items, struct item, node));
}

static void take_base(struct reading *r, const json_t *row)
{
	const char *time = json_get_str(row, "time");
	int64_t lsn = json_get_int(row, "lsn", -1);

	if (json_get_int(row, "version", 0) > 1)
		r->wrong = "the ledger of deliveries was written by a newer ava: use that one";
	if (lsn < 0 || (r->base.found && r->base.generation > r->generation))
		return;
	drop_items(r);
	r->base = (struct base){
		.found = true,
		.notify = json_get_bool(row, "notify", false),
		.generation = r->generation,
		.lsn = (uint64_t)lsn,
		.wall_ms = time ? MAX(clock_parse_iso(time, strlen(time)), 0) : 0,
	};
}

static void take_item(struct reading *r, const json_t *row)
{
	struct item *it;
	int rv;

	if (!r->base.found || r->base.generation != r->generation)
		return;
	rv = item_from_json(&it, json_object_get(row, "item"));
	if (rv != 0) {
		r->no_memory = r->no_memory || rv == AVA_ENOMEM;
		return;
	}
	it->open = channels_of(row);
	it->attempts = (unsigned)MAX(json_get_int(row, "attempts", 0), 0);
	list_add(&r->items, &it->node);
}

static void take_settled(struct reading *r, const json_t *row)
{
	const char *name = json_get_str(row, "channel");
	unsigned channel = name ? delivery_channel(name) : 0;
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(row, "lsns"), i, v)
	{
		if (channel && json_is_integer(v))
			add_fact(r, (uint64_t)json_integer_value(v), channel, 0);
	}
}

static void take_send(struct reading *r, const json_t *row)
{
	int64_t lsn = json_get_int(row, "lsn", 0), attempt = json_get_int(row, "attempt", 0);

	if (lsn > 0 && attempt > 0)
		add_fact(r, (uint64_t)lsn, 0, (unsigned)MIN(attempt, INT64_C(1000000)));
}

static void take_row(struct reading *r, const json_t *row)
{
	const char *kind = json_get_str(row, "row");

	if (!kind)
		return;
	if (strcmp(kind, "base") == 0)
		take_base(r, row);
	else if (strcmp(kind, "item") == 0)
		take_item(r, row);
	else if (strcmp(kind, "ack") == 0 || strcmp(kind, "gave_up") == 0)
		take_settled(r, row);
	else if (strcmp(kind, "send") == 0)
		take_send(r, row);
}

/* ---- files */

static unsigned generation_of(const char *name)
{
	unsigned n = 0;

	if (strspn(name, "0123456789") < 8 || name[8] != '.' || !strstr(name, ".jsonl"))
		return 0;
	for (int i = 0; i < 8; i++)
		n = n * 10 + (unsigned)(name[i] - '0');
	return n;
}

/* Kept in order, the newest ones when there are too many. */
static void see_name(const char *name, void *user)
{
	struct reading *r = user;
	unsigned at = r->nnames;

	if (generation_of(name) == 0 || strlen(name) >= sizeof(r->names[0]))
		return;
	r->newest = MAX(r->newest, generation_of(name));
	if (at == FILES_MAX) {
		if (strcmp(name, r->names[0]) < 0)
			return;
		memmove(r->names[0], r->names[1], sizeof(r->names[0]) * --at);
	}
	for (; at > 0 && strcmp(r->names[at - 1], name) > 0; at--)
		memcpy(r->names[at], r->names[at - 1], sizeof(r->names[0]));
	snprintf(r->names[at], sizeof(r->names[0]), "%s", name);
	r->nnames = MIN(r->nnames + 1, FILES_MAX);
}

static void read_rows(struct reading *r, const char *name)
{
	struct core *c = r->d->core;
	struct ava_error err = {0};
	const char *line;
	char *data = NULL, path[64];
	size_t len = 0, at = 0, n;

	snprintf(path, sizeof(path), "delivery/%s", name);
	r->generation = generation_of(name);
	if (sys_read_file(c->root_fd, path, LEDGER_MAX, &data, &len, &err) != 0) {
		core_log(c, "%s cannot be read, what it settled may be told again: %s", path,
			 err.text);
		return;
	}
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *row = json_parse(line, n, NULL);

		take_row(r, row);
		json_decref(row);
	}
	free(data);
}

/* ---- what there is to deliver */

static unsigned wanted_by(const struct reading *r, const struct item *it)
{
	const struct delivery *d = r->d;
	bool talks = it->session[0] && strmap_get(&d->core->session_by_id, it->session);

	return (talks ? DELIVERY_TERMINAL : 0) |
	       (d->notify && (!r->base.found || r->base.notify) ? DELIVERY_NOTIFY : 0);
}

static void take_open(struct reading *r, struct item *it)
{
	apply_facts(r, it);
	if (it->open && it->wall_ms >= clock_wall_ms() - DELIVERY_AGE_MS)
		delivery_insert(r->d, it);
	else
		item_free(it);
}

static void take_event(struct reading *r, const struct ava_log_event *e)
{
	struct delivery *d = r->d;
	char key[ITEM_KEY];
	struct item *it;
	int rv;

	if (item_answers(e->type, e->line, e->len, key))
		delivery_answered(d, key);
	if (!r->base.found && e->time_ms < clock_wall_ms() - LOST_LEDGER_MS)
		return;
	rv = item_from_event(&it, e->type, e->line, e->len);
	if (rv == 0) {
		it->open = wanted_by(r, it);
		take_open(r, it);
	} else {
		r->no_memory = r->no_memory || rv == AVA_ENOMEM;
	}
}

static void read_logs(struct reading *r)
{
	struct ava_log_query q = {
		.root = r->d->core->root,
		.types = "AssistantMessage,SubagentComplete,SpawnProposed,SpawnConfirmed,"
			 "SpawnRejected,SpawnExpired,Waiting",
		.after = r->base.lsn > 0 ? r->base.lsn - 1 : 0,
	};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	if (ava_log_open(&log, &q, NULL) != 0)
		return; /* no daily log yet */
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT)
		if (rv == 1)
			take_event(r, &e);
	ava_log_close(log);
}

/* Of the rows: those whose conversation or command is still there. */
static void take_items(struct reading *r)
{
	while (!list_empty(&r->items)) {
		struct item *it = LIST_FIRST(&r->items, struct item, node);

		list_del(&it->node);
		it->open &= wanted_by(r, it);
		take_open(r, it);
	}
}

int ledger_read(struct delivery *d, struct ava_error *err)
{
	struct reading *r = calloc(1, sizeof(*r));
	int rv = 0;

	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->d = d;
	list_init(&r->items);
	(void)sys->list(d->core->root_fd, "delivery", see_name, r);
	for (unsigned i = 0; i < r->nnames; i++)
		read_rows(r, r->names[i]);
	join_facts(r);
	d->generation = r->newest;
	take_items(r);
	if (r->wrong)
		rv = err_set(err, AVA_EFORMAT, "%s", r->wrong);
	else if (r->nnames > 0)
		read_logs(r);
	if (rv == 0 && r->no_memory)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	drop_items(r);
	free(r->facts);
	free(r);
	return rv;
}

/* ---- writing */

static struct buf *rows(struct delivery *d, struct draft *dr, struct jw *w)
{
	struct buf *b = draft_part(dr, DRAFT_MESSAGES, d->path);

	if (b)
		jw_init(w, b);
	return b;
}

static void write_base(struct delivery *d, struct draft *dr, uint64_t lsn)
{
	char now[CLOCK_ISO_LEN + 1];
	struct jw w;
	struct buf *b = rows(d, dr, &w);

	if (!b)
		return;
	clock_iso(clock_wall_ms(), now);
	jw_object(&w, NULL);
	jw_str(&w, "row", "base");
	jw_int(&w, "version", 1);
	jw_int(&w, "lsn", (int64_t)lsn);
	jw_str(&w, "time", now);
	jw_bool(&w, "notify", d->notify != NULL);
	jw_end(&w);
	buf_addc(b, '\n');
}

static void write_item(struct delivery *d, struct draft *dr, const struct item *it)
{
	struct jw w;
	struct buf *b = rows(d, dr, &w);

	if (!b)
		return;
	jw_object(&w, NULL);
	jw_str(&w, "row", "item");
	jw_array(&w, "channels");
	for (unsigned bit = 1; bit < 1u << DELIVERY_NCHANNELS; bit <<= 1)
		if (it->open & bit)
			jw_str(&w, NULL, delivery_channel_name(bit));
	jw_end(&w);
	jw_int(&w, "attempts", it->attempts);
	jw_raw(&w, "item", it->json, strlen(it->json));
	jw_end(&w);
	buf_addc(b, '\n');
}

struct old_files {
	struct core *core;
	unsigned before;
};

static void remove_older(const char *name, void *user)
{
	struct old_files *o = user;
	unsigned n = generation_of(name);
	char path[300];

	if (n == 0 || n >= o->before || strlen(name) > 200)
		return;
	snprintf(path, sizeof(path), "delivery/%s", name);
	(void)sys->unlinkat(o->core->root_fd, path, 0);
}

static void begun(int rv, void *user)
{
	struct delivery *d = user;
	struct old_files o = {.core = d->core, .before = d->generation - d->keep};

	d->beginning = false;

	if (rv == 0)
		(void)sys->list(d->core->root_fd, "delivery", remove_older, &o);
	else /* the older files stay, and are read again with what follows */
		core_log(d->core, "the ledger of deliveries could not be begun anew: %s",
			 ava_strerror(rv));
}

static void file_name(unsigned generation, char out[LEDGER_PATH])
{
	snprintf(out, LEDGER_PATH, "delivery/%08u.jsonl", generation % 100000000u);
}

void ledger_begin(struct delivery *d, uint64_t lsn)
{
	struct draft *dr = draft_new(&d->core->book);
	struct ava_error err = {0};
	struct buf *part;

	d->generation++;
	file_name(d->generation, d->path);
	d->grown = 0;
	if (!dr)
		return;
	if (d->first == 0)
		d->first = d->generation;
	else if (d->generation - d->first >= 2) { /* the journal is done with it */
		char old[sizeof(d->path)];

		file_name(d->generation - 2, old);
		(void)draft_part(dr, DRAFT_DROP, old);
	}
	write_base(d, dr, lsn);
	LIST_EACH (&d->items, n, tmp)
		write_item(d, dr, LIST_ENTRY(n, struct item, node));
	part = draft_part(dr, DRAFT_MESSAGES, d->path);
	d->base_bytes = part ? part->len : 0;
	d->beginning = draft_commit(dr, JOURNAL_RIDE, begun, d, &err) == 0;
	if (!d->beginning)
		core_log(d->core, "the ledger of deliveries could not be begun anew: %s", err.text);
}

/* An acknowledgement that is being written now goes to the file of before, so
 * that one stays until the next time. */
bool ledger_trim(struct delivery *d)
{
	uint64_t shown = logbook_shown(&d->core->book);

	if (d->beginning || d->grown < MAX(d->trim_bytes, 2 * d->base_bytes))
		return true;
	if (shown < d->seen)
		return false;
	d->keep = 1;
	ledger_begin(d, shown + 1);
	return true;
}

void ledger_settled(struct delivery *d, struct draft *dr, const char *row, unsigned channel,
		    const uint64_t *lsns, unsigned n)
{
	struct jw w;
	struct buf *b = rows(d, dr, &w);
	size_t before;

	if (!b)
		return;
	before = b->len;
	jw_object(&w, NULL);
	jw_str(&w, "row", row);
	jw_str(&w, "channel", delivery_channel_name(channel));
	jw_array(&w, "lsns");
	for (unsigned i = 0; i < n; i++)
		jw_int(&w, NULL, (int64_t)lsns[i]);
	jw_end(&w);
	jw_end(&w);
	buf_addc(b, '\n');
	d->grown += b->len - before;
}

void ledger_send(struct delivery *d, struct draft *dr, const struct item *it)
{
	struct jw w;
	struct buf *b = rows(d, dr, &w);
	size_t before;

	if (!b)
		return;
	before = b->len;
	jw_object(&w, NULL);
	jw_str(&w, "row", "send");
	jw_str(&w, "channel", delivery_channel_name(DELIVERY_NOTIFY));
	jw_int(&w, "lsn", (int64_t)it->lsn);
	jw_int(&w, "attempt", it->attempts);
	jw_end(&w);
	buf_addc(b, '\n');
	d->grown += b->len - before;
}
