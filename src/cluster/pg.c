/* A connection to PostgreSQL; pg.h.
 *
 *   RESTING ──► CONNECTING ──► UP          (every state may go to CLOSED)
 *      ▲             │          │
 *      └─────────────┴──────────┘
 *
 * Happy path: each step of connecting runs on a pool thread, since libpq looks up names in there,
 * and the loop waits for the socket between the steps; the poll goes before a step, which may close
 * the socket. Once UP the connection is in libpq's pipeline mode. At the end of a turn of the loop
 * the batches that wait are handed to libpq, each with a sync behind it, and what the socket does
 * not take is flushed when it can be written. Results are taken while libpq need not wait; a sync
 * answers the first batch under way.
 *
 * What can fail: a statement, which undoes its batch up to the sync; the connection (its end, no
 * answer in time, a result that cannot be), which answers all batches with AVA_EUNKNOWN and is made
 * anew. A result means nothing before its sync: the server has committed only then, and for a
 * connection that is gone libpq makes up errors, but no sync. */
#include "cluster/pg.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "base/list.h"
#include "base/util.h"
#include "cluster/libpq.h"
#include "codec/utf8.h"
#include "os/loop.h"

#define PG_PAUSE_LEAST_MS 100
#define PG_PAUSE_MOST_MS  10000
#define PG_OPTIONS_MAX    128 /* of a URL; libpq knows some 50 */

enum { /* pg_type.oid of what is built in, which never changes */
       PG_BOOL = 16,
       PG_BYTEA = 17,
       PG_INT8 = 20,
       PG_INT2 = 21,
       PG_INT4 = 23,
       PG_TEXT = 25,
       PG_BYTEA_ARRAY = 1001,
       PG_TEXT_ARRAY = 1009,
       PG_INT8_ARRAY = 1016,
};

struct pg_param {
	unsigned type;
	int len;   /* -1: null */
	size_t at; /* in the batch's bytes */
};

struct pg_statement {
	size_t sql; /* where it begins in the batch's bytes, NUL-terminated */
	size_t nparams;
};

struct pg_batch {
	struct list node;
	struct buf bytes; /* the statements and their parameters; empty once libpq has them */
	struct pg_statement *statements;
	struct pg_param *params; /* of all statements, in order */
	size_t nstatements, cap_statements, nparams, cap_params;
	int rv;               /* what went wrong while it was made */
	struct ava_error err; /* of the first statement that failed; code 0: none */
	char sqlstate[6];
	size_t size;      /* bytes that count in pg.bytes */
	int64_t until_ms; /* when patience ends */
	struct pg_result *results;
	unsigned nresults;
	pg_done_fn done;
	void *user;
};

enum pg_state { PG_RESTING, PG_CONNECTING, PG_UP, PG_CLOSED };

struct pg {
	struct libpq pq;
	struct libpq_option *parsed; /* the URL; its lists of hosts turn with each attempt */
	struct pg_options o;         /* url is not kept */
	char *name;
	struct os_loop *loop;
	enum pg_state state;
	bool at_work; /* a pool thread has `conn`, and nobody else */
	bool late;    /* patience ended meanwhile */
	struct libpq_conn *conn;
	enum libpq_polling polling; /* outcome of the last step */
	struct os_work work;
	struct os_poll *poll;
	struct os_timer *timer;         /* RESTING: the next attempt; else the end of patience */
	struct os_task turn;            /* the end of a turn: sends what waits, frees when CLOSED */
	struct list waiting, under_way; /* struct pg_batch */
	size_t nbatches, bytes;         /* of both */
	unsigned fails;                 /* attempts and connections without an answered batch */
	char said[256];                 /* why the server ended it */
};

/* ---- a batch */

struct pg_batch *pg_batch_new(void)
{
	struct pg_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	list_init(&b->node);
	buf_init(&b->bytes, PG_BATCH_MAX);
	return b;
}

/* Bytes that libpq has copied go at once: a batch may be under way for long. */
static void pg_batch_strip(struct pg_batch *b)
{
	buf_fini(&b->bytes);
	free(b->statements);
	free(b->params);
	b->statements = NULL;
	b->params = NULL;
}

void pg_batch_free(struct pg_batch *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < b->nresults; i++)
		((const struct libpq *)b->results[i].pq)->PQclear(b->results[i].rows);
	free(b->results);
	pg_batch_strip(b);
	free(b);
}

void pg_batch_add(struct pg_batch *b, const char *sql)
{
	if (!b || b->rv != 0)
		return;
	if (!ARRAY_ROOM(b->statements, b->cap_statements, b->nstatements + 1)) {
		b->rv = AVA_ENOMEM;
		return;
	}
	b->statements[b->nstatements++] = (struct pg_statement){.sql = b->bytes.len};
	buf_add(&b->bytes, sql, strlen(sql) + 1);
}

/* NULL: no room for one more parameter, or the batch has failed already. */
static struct pg_param *pg_param_new(struct pg_batch *b, unsigned type)
{
	struct pg_statement *s;

	if (!b || b->rv != 0)
		return NULL;
	assert(b->nstatements > 0); /* a parameter belongs to a statement */
	s = &b->statements[b->nstatements - 1];
	if (s->nparams == PG_PARAMS_MAX)
		b->rv = AVA_ETOOBIG;
	else if (!ARRAY_ROOM(b->params, b->cap_params, b->nparams + 1))
		b->rv = AVA_ENOMEM;
	if (b->rv != 0)
		return NULL;
	s->nparams++;
	b->params[b->nparams] = (struct pg_param){.type = type, .len = -1, .at = b->bytes.len};
	return &b->params[b->nparams++];
}

static void pg_param_put(struct pg_batch *b, unsigned type, const void *data, size_t len)
{
	struct pg_param *p = pg_param_new(b, type);

	if (!p || !data)
		return;
	buf_add(&b->bytes, data, len);
	p->len = (int)len; /* longer ones did not fit into the buffer */
}

void pg_batch_text(struct pg_batch *b, const char *text)
{
	pg_param_put(b, PG_TEXT, text, text ? strlen(text) : 0);
}

static uint64_t pg_big_endian(int64_t n)
{
	return (uint64_t)htonl((uint32_t)((uint64_t)n >> 32)) | (uint64_t)htonl((uint32_t)n) << 32;
}

void pg_batch_int(struct pg_batch *b, int64_t n)
{
	uint64_t big = pg_big_endian(n);

	pg_param_put(b, PG_INT8, &big, sizeof(big));
}

void pg_batch_bytes(struct pg_batch *b, const void *data, size_t len)
{
	pg_param_put(b, PG_BYTEA, data, len);
}

/* ---- arrays in PostgreSQL's binary form: dimensions (1, or 0: empty), is a null in it, type; of
 * each dimension its length and first index; then each element with its length (-1: null). */

static void pg_put32(struct buf *out, uint32_t n)
{
	n = htonl(n);
	buf_add(out, &n, sizeof(n));
}

static struct pg_param *pg_array_begin(struct pg_batch *b, unsigned array, unsigned type, size_t n)
{
	struct pg_param *p = pg_param_new(b, array);

	if (!p)
		return NULL;
	pg_put32(&b->bytes, n > 0);
	pg_put32(&b->bytes, 1); /* may have nulls; the server looks for itself */
	pg_put32(&b->bytes, type);
	if (n > 0) {
		pg_put32(&b->bytes, (uint32_t)n);
		pg_put32(&b->bytes, 1);
	}
	return p;
}

static void pg_array_put(struct pg_batch *b, const void *data, size_t len)
{
	pg_put32(&b->bytes, data ? (uint32_t)len : UINT32_MAX);
	if (data)
		buf_add(&b->bytes, data, len);
}

static void pg_array_end(struct pg_batch *b, struct pg_param *p)
{
	p->len = (int)(b->bytes.len - p->at);
}

void pg_batch_texts(struct pg_batch *b, const char *const *texts, size_t n)
{
	struct pg_param *p = pg_array_begin(b, PG_TEXT_ARRAY, PG_TEXT, n);

	if (!p)
		return;
	for (size_t i = 0; i < n; i++)
		pg_array_put(b, texts[i], texts[i] ? strlen(texts[i]) : 0);
	pg_array_end(b, p);
}

void pg_batch_ints(struct pg_batch *b, const int64_t *ints, size_t n)
{
	struct pg_param *p = pg_array_begin(b, PG_INT8_ARRAY, PG_INT8, n);

	if (!p)
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t big = pg_big_endian(ints[i]);

		pg_array_put(b, &big, sizeof(big));
	}
	pg_array_end(b, p);
}

void pg_batch_byteses(struct pg_batch *b, const struct pg_bytes *byteses, size_t n)
{
	struct pg_param *p = pg_array_begin(b, PG_BYTEA_ARRAY, PG_BYTEA, n);

	if (!p)
		return;
	for (size_t i = 0; i < n; i++)
		pg_array_put(b, byteses[i].data, byteses[i].len);
	pg_array_end(b, p);
}

/* ---- results */

unsigned pg_rows(const struct pg_result *r)
{
	const struct libpq *pq = r->pq;

	return (unsigned)pq->PQntuples(r->rows);
}

int64_t pg_affected(const struct pg_result *r)
{
	const struct libpq *pq = r->pq;

	return strtoll(pq->PQcmdTuples(r->rows), NULL, 10);
}

static bool pg_is_null(const struct pg_result *r, unsigned row, unsigned col)
{
	const struct libpq *pq = r->pq;

	return row >= pg_rows(r) || col >= (unsigned)pq->PQnfields(r->rows) ||
	       pq->PQgetisnull(r->rows, (int)row, (int)col);
}

const char *pg_text(const struct pg_result *r, unsigned row, unsigned col, size_t *len)
{
	const struct libpq *pq = r->pq;

	if (pg_is_null(r, row, col))
		return NULL;
	if (len)
		*len = (size_t)pq->PQgetlength(r->rows, (int)row, (int)col);
	return pq->PQgetvalue(r->rows, (int)row, (int)col);
}

bool pg_int(const struct pg_result *r, unsigned row, unsigned col, int64_t *n)
{
	static const struct {
		unsigned type;
		size_t len;
	} whole[] = {{PG_INT8, 8}, {PG_INT4, 4}, {PG_INT2, 2}, {PG_BOOL, 1}};
	const struct libpq *pq = r->pq;
	size_t len = 0;
	const unsigned char *p = (const unsigned char *)pg_text(r, row, col, &len);

	for (size_t i = 0; p && i < ARRAY_LEN(whole); i++) {
		int64_t sum = (signed char)p[0]; /* there is a NUL at the least */

		if (whole[i].type != pq->PQftype(r->rows, (int)col) || whole[i].len != len)
			continue;
		for (size_t k = 1; k < len; k++)
			sum = (int64_t)((uint64_t)sum << 8 | p[k]);
		*n = sum;
		return true;
	}
	return false;
}

/* ---- sentences */

/* The words of libpq and the server as one line, in UTF-8. Their lines that begin with a tab are
 * advice. */
static void pg_line(char *out, size_t size, const char *said)
{
	size_t n = 0;

	for (size_t len; *said != '\0'; said += len + (said[len] == '\n')) {
		len = strcspn(said, "\n");
		if (len == 0 || said[0] == '\t')
			continue;
		for (const char *more = n > 0 ? "; " : ""; *more != '\0' && n + 1 < size; more++)
			out[n++] = *more;
		for (size_t i = 0; i < len && n + 1 < size; i++)
			if (said[i] != ' ' || n == 0 || out[n - 1] != ' ')
				out[n++] = said[i];
	}
	out[n] = '\0';
	/* Before it knows our encoding a server speaks in its own; a cut splits a character. */
	for (size_t i = 0; !utf8_valid(out, n) && i < n; i++)
		if ((unsigned char)out[i] >= 0x80)
			out[i] = '?';
}

/* Keep what the server says when it ends the connection. */
static void pg_hear(struct pg *pg, const struct libpq_result *rows)
{
	const char *severity = pg->pq.PQresultErrorField(rows, 'V');
	const char *said = pg->pq.PQresultErrorField(rows, 'M');

	if (severity && said && list_has("FATAL PANIC", ' ', severity))
		pg_line(pg->said, sizeof(pg->said), said);
}

/* Without a batch under way libpq takes the server's last words for a notice. */
static void pg_notice_cb(void *user, const struct libpq_result *rows)
{
	pg_hear(user, rows);
}

static int pg_code(const char *sqlstate)
{
	static const struct {
		const char *sqlstate;
		int code;
	} codes[] = {
		{"23505", AVA_EEXIST},   /* unique_violation */
		{"40001", AVA_EBUSY},    /* serialization_failure */
		{"40P01", AVA_EBUSY},    /* deadlock_detected */
		{"55P03", AVA_EBUSY},    /* lock_not_available */
		{"42501", AVA_EDENIED},  /* insufficient_privilege */
		{"53100", AVA_EFULL},    /* disk_full */
		{"57014", AVA_ETIMEOUT}, /* query_canceled, by statement_timeout */
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (strcmp(codes[i].sqlstate, sqlstate) == 0)
			return codes[i].code;
	return AVA_EREJECTED;
}

/* ---- answers to batches */

/* The batch is in no list any more when it is answered: the callback may do anything. */
static void pg_answer(struct pg *pg, struct pg_batch *b, int rv, const struct ava_error *err)
{
	struct pg_answer a = {.rv = rv, .err = err, .sqlstate = b->sqlstate};

	if (rv == 0) {
		a.results = b->results;
		a.n = b->nresults;
	}
	list_del(&b->node);
	pg->nbatches--;
	pg->bytes -= b->size;
	b->done(&a, b->user);
	pg_batch_free(b);
}

/* Batches under way may have been committed, those that wait cannot; one code for both is enough
 * for who sends them, and says less than is known at times. */
static void pg_answer_all(struct pg *pg, int rv, const char *why)
{
	struct list *lists[] = {&pg->under_way, &pg->waiting};
	struct ava_error err;
	struct pg_batch *b;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		while ((b = LIST_FIRST(lists[i], struct pg_batch, node)) != NULL) {
			b->sqlstate[0] = '\0';
			err_set(&err, rv, "the database has not answered, and may have done it: %s",
				why);
			pg_answer(pg, b, rv, &err);
		}
}

static void pg_note_error(struct pg *pg, struct pg_batch *b, const struct libpq_result *rows)
{
	const char *state = pg->pq.PQresultErrorField(rows, 'C');
	const char *said = pg->pq.PQresultErrorField(rows, 'M');
	char line[sizeof(b->err.text)];

	pg_hear(pg, rows);
	if (b->err.code != 0)
		return;
	snprintf(b->sqlstate, sizeof(b->sqlstate), "%s", state ? state : "");
	pg_line(line, sizeof(line), said ? said : "no reason was given");
	err_set(&b->err, pg_code(b->sqlstate), "the database refuses: %s", line);
}

/* Take a result of the first batch under way: *taken*. False: it cannot be. */
static bool pg_take(struct pg *pg, struct pg_batch *b, struct libpq_result *rows)
{
	bool failed = b->err.code != 0;

	switch (pg->pq.PQresultStatus(rows)) {
	case LIBPQ_EMPTY_QUERY:
	case LIBPQ_COMMAND_OK:
	case LIBPQ_TUPLES_OK:
		if (failed || b->nresults == b->nstatements)
			break;
		b->results[b->nresults++] = (struct pg_result){.pq = &pg->pq, .rows = rows};
		return true;
	case LIBPQ_FATAL_ERROR:
		pg_note_error(pg, b, rows);
		pg->pq.PQclear(rows);
		return true;
	case LIBPQ_PIPELINE_ABORTED:
		pg->pq.PQclear(rows);
		return failed;
	case LIBPQ_PIPELINE_SYNC:
		if (!failed && b->nresults != b->nstatements)
			break;
		pg->pq.PQclear(rows);
		pg->fails = 0;
		pg_answer(pg, b, b->err.code, failed ? &b->err : NULL);
		return true;
	default:
		break;
	}
	pg->pq.PQclear(rows);
	return false;
}

/* Take what is there. False: the connection is not to be used any more. */
static bool pg_take_all(struct pg *pg)
{
	unsigned nothing =
		0; /* NULLs in a row: one ends a statement; libpq has no more when more */

	while (pg->state == PG_UP && !pg->pq.PQisBusy(pg->conn)) {
		struct pg_batch *b = LIST_FIRST(&pg->under_way, struct pg_batch, node);
		struct libpq_result *rows = b ? pg->pq.PQgetResult(pg->conn) : NULL;

		if (!b)
			return true;
		nothing = rows ? 0 : nothing + 1;
		if (nothing > 2 || (rows && !pg_take(pg, b, rows)))
			return false;
	}
	return true;
}

/* ---- the end of a connection, and the next one */

static int64_t pg_pause(struct pg *pg)
{
	int64_t most = MIN((int64_t)PG_PAUSE_LEAST_MS << MIN(pg->fails, 7u), PG_PAUSE_MOST_MS);
	uint32_t dice;

	id_random(&dice, sizeof(dice));
	return MAX(most / 2 + dice % (most / 2 + 1), PG_PAUSE_LEAST_MS);
}

/* Put the first item of "a,b,c" at the end. Without memory the list stays. */
static void pg_turn(char *list)
{
	int first = (int)strcspn(list, ",");
	size_t len = strlen(list);
	char *copy = list[first] == ',' ? strdup(list) : NULL;

	if (copy)
		snprintf(list, len + 1, "%s,%.*s", copy + first + 1, first, copy);
	free(copy);
}

/* The patience is for an attempt, and libpq goes on to the next host only when one refuses: of
 * hosts that say nothing each attempt would meet the first. */
static void pg_turn_hosts(struct pg *pg)
{
	for (struct libpq_option *o = pg->parsed; o->keyword; o++)
		if (o->val && list_has("host hostaddr port", ' ', o->keyword))
			pg_turn(o->val);
}

/* End the connection or the attempt, and rest. The server's last words say why, else `text`, else
 * (NULL) libpq. */
static void pg_drop(struct pg *pg, int code, const char *text)
{
	struct ava_error why;
	char line[sizeof(why.text)];

	assert(!pg->at_work);
	if (pg->said[0] != '\0')
		snprintf(line, sizeof(line), "the server ended the connection: %s", pg->said);
	else if (text || !pg->conn)
		snprintf(line, sizeof(line), "%s", text ? text : "out of memory");
	else
		pg_line(line, sizeof(line), pg->pq.PQerrorMessage(pg->conn));
	err_set(&why, code, "%s", line[0] != '\0' ? line : "the connection to the database broke");
	if (pg->state == PG_CONNECTING)
		pg_turn_hosts(pg);
	os_poll_free(pg->poll);
	pg->poll = NULL;
	pg->pq.PQfinish(pg->conn); /* NULL is fine */
	pg->conn = NULL;
	pg->state = PG_RESTING;
	os_timer_set(pg->timer, pg_pause(pg));
	pg->fails++;
	pg_answer_all(pg, AVA_EUNKNOWN, why.text);
	if (pg->state != PG_CLOSED)
		pg->o.down(&why, pg->o.user);
}

static struct libpq_conn *pg_connect(struct pg *pg)
{
	const char *keywords[PG_OPTIONS_MAX + 3] = {"application_name"};
	const char *values[PG_OPTIONS_MAX + 3] = {pg->name};
	struct libpq_conn *conn;
	size_t n = 1;

	for (const struct libpq_option *o = pg->parsed; o->keyword && n <= PG_OPTIONS_MAX; o++)
		if (o->val) {
			keywords[n] = o->keyword;
			values[n++] = o->val;
		}
	keywords[n] = "client_encoding";
	values[n] = "UTF8";
	conn = pg->pq.PQconnectStartParams(keywords, values, 0);
	if (conn)
		pg->pq.PQsetNoticeReceiver(conn, pg_notice_cb, pg);
	return conn;
}

/* A step of connecting, on a pool thread. */
static void pg_step_work(struct os_work *w)
{
	struct pg *pg = CONTAINER_OF(w, struct pg, work);

	if (pg->conn) {
		pg->polling = (enum libpq_polling)pg->pq.PQconnectPoll(pg->conn);
		return;
	}
	pg->conn = pg_connect(pg);
	pg->polling = pg->conn && pg->pq.PQsocket(pg->conn) >= 0 ? LIBPQ_POLLING_WRITING
								 : LIBPQ_POLLING_FAILED;
}

static void pg_stepped_cb(struct os_work *w);

static void pg_step(struct pg *pg)
{
	os_poll_free(pg->poll);
	pg->poll = NULL;
	pg->at_work = true;
	pg->work = (struct os_work){.work = pg_step_work, .done = pg_stepped_cb, .owner = pg};
	os_work_start_foreign(pg->loop, &pg->work);
}

/* ---- up */

static void pg_ready_cb(int events, void *user);

static bool pg_watch(struct pg *pg, int events)
{
	if (!pg->poll)
		pg->poll = os_poll_new(pg->loop, pg->pq.PQsocket(pg->conn), pg_ready_cb, pg);
	if (pg->poll)
		os_poll_set(pg->poll, events);
	return pg->poll != NULL;
}

static void pg_come_up(struct pg *pg)
{
	if (pg->pq.PQsetnonblocking(pg->conn, 1) != 0 || !pg->pq.PQenterPipelineMode(pg->conn) ||
	    !pg_watch(pg, OS_READ)) {
		pg_drop(pg, AVA_ECONNECT, NULL);
		return;
	}
	pg->state = PG_UP;
	os_timer_stop(pg->timer);
	pg->o.up(pg->o.user);
}

static const char pg_late[] = "the database does not answer in time";

static void pg_stepped_cb(struct os_work *w)
{
	struct pg *pg = CONTAINER_OF(w, struct pg, work);

	pg->at_work = false;
	if (pg->state == PG_CLOSED)
		os_defer(pg->loop, &pg->turn);
	else if (pg->polling == LIBPQ_POLLING_OK)
		pg_come_up(pg);
	else if (pg->late)
		pg_drop(pg, AVA_ETIMEOUT, pg_late);
	else if (pg->polling == LIBPQ_POLLING_FAILED ||
		 !pg_watch(pg, pg->polling == LIBPQ_POLLING_READING ? OS_READ : OS_WRITE))
		pg_drop(pg, AVA_ECONNECT, NULL);
}

/* Let patience end with that of the first batch under way. */
static void pg_be_patient(struct pg *pg)
{
	struct pg_batch *b = LIST_FIRST(&pg->under_way, struct pg_batch, node);

	if (b)
		os_timer_set(pg->timer, b->until_ms - os_now_ms(pg->loop));
	else
		os_timer_stop(pg->timer);
}

static void pg_flush(struct pg *pg)
{
	int left = pg->pq.PQflush(pg->conn);

	if (left < 0) {
		pg_drop(pg, AVA_ECONNECT, NULL);
		return;
	}
	pg_watch(pg, left > 0 ? OS_READ | OS_WRITE : OS_READ);
	pg_be_patient(pg);
}

/* Read what came, answer, write what is left. */
static void pg_exchange(struct pg *pg)
{
	/* Older libpq leave a part of a large TLS record in OpenSSL, for which the socket is never
	 * readable again; another read takes it. */
	int reads = pg->pq.PQsslInUse(pg->conn) ? 3 : 1;
	char why[256];
	bool good = true, sane;

	while (good && reads-- > 0)
		good = pg->pq.PQconsumeInput(pg->conn);
	pg_line(why, sizeof(why), pg->pq.PQerrorMessage(pg->conn));
	if (!good) { /* libpq has closed the socket, whose number the callbacks may get */
		os_poll_free(pg->poll);
		pg->poll = NULL;
	}
	sane = pg_take_all(pg); /* also of a connection that has ended: the answers came before */
	if (pg->state != PG_UP)
		return;
	if (!good)
		pg_drop(pg, AVA_ECONNECT, why);
	else if (pg->pq.PQstatus(pg->conn) != LIBPQ_CONNECTION_OK)
		pg_drop(pg, AVA_ECONNECT, NULL);
	else if (!sane)
		pg_drop(pg, AVA_EPROTO, "the database answers what was not asked");
	else
		pg_flush(pg);
}

static void pg_ready_cb(int events, void *user)
{
	struct pg *pg = user;

	(void)events; /* libpq tries both */
	if (pg->state == PG_CONNECTING)
		pg_step(pg);
	else if (pg->state == PG_UP)
		pg_exchange(pg);
}

static void pg_timer_cb(void *user)
{
	struct pg *pg = user;
	struct pg_batch *b;

	if (pg->state == PG_RESTING) {
		pg->state = PG_CONNECTING;
		pg->late = false;
		pg->said[0] = '\0';
		os_timer_set(pg->timer, pg->o.timeout_ms);
		pg_step(pg);
	} else if (pg->at_work) {
		pg->late = true;
	} else if (pg->state == PG_CONNECTING) {
		pg_drop(pg, AVA_ETIMEOUT, pg_late);
	} else {
		pg_exchange(pg); /* the answer may have come while the loop was busy */
		b = LIST_FIRST(&pg->under_way, struct pg_batch, node);
		if (pg->state == PG_UP && b && b->until_ms <= os_now_ms(pg->loop))
			pg_drop(pg, AVA_ETIMEOUT, pg_late);
	}
}

/* ---- sending */

static bool pg_put(struct pg *pg, struct pg_batch *b)
{
	const struct pg_param *p = b->params;

	for (size_t i = 0; i < b->nstatements; i++) {
		const struct pg_statement *s = &b->statements[i];
		const char *values[PG_PARAMS_MAX];
		unsigned types[PG_PARAMS_MAX];
		int lengths[PG_PARAMS_MAX], formats[PG_PARAMS_MAX];

		for (size_t k = 0; k < s->nparams; k++, p++) {
			types[k] = p->type;
			values[k] = p->len < 0 ? NULL : b->bytes.data + p->at;
			lengths[k] = p->len;
			formats[k] = 1;
		}
		if (!pg->pq.PQsendQueryParams(pg->conn, b->bytes.data + s->sql, (int)s->nparams,
					      types, values, lengths, formats, 1))
			return false;
	}
	pg_batch_strip(b);
	return pg->pq.PQpipelineSync(pg->conn);
}

static void pg_free(struct pg *pg)
{
	os_poll_free(pg->poll);
	os_timer_free(pg->timer);
	if (pg->conn)
		pg->pq.PQfinish(pg->conn);
	if (pg->parsed)
		pg->pq.PQconninfoFree(pg->parsed);
	free(pg->name);
	free(pg);
}

static void pg_turn_cb(struct os_task *t)
{
	struct pg *pg = CONTAINER_OF(t, struct pg, turn);
	struct pg_batch *b;

	if (pg->state == PG_CLOSED) {
		if (!pg->at_work) /* else pg_stepped_cb comes */
			pg_free(pg);
		return;
	}
	while ((b = LIST_FIRST(&pg->waiting, struct pg_batch, node)) != NULL) {
		list_del(&b->node);
		list_add(&pg->under_way, &b->node);
		if (!pg_put(pg, b)) {
			pg_drop(pg, AVA_ECONNECT, NULL);
			return;
		}
	}
	if (pg->state == PG_UP)
		pg_flush(pg);
}

/* 0, or why the batch is not sent. */
static int pg_admit(struct pg *pg, struct pg_batch *b, struct ava_error *err)
{
	int rv = !b ? AVA_ENOMEM : b->rv != 0 ? b->rv : buf_check(&b->bytes);

	if (rv == 0 && b->nstatements > 0) {
		b->results = calloc(b->nstatements, sizeof(*b->results));
		rv = b->results ? 0 : AVA_ENOMEM;
	}
	if (rv == AVA_ETOOBIG)
		return err_set(err, rv,
			       "a batch for the database is over %u MB, or a statement"
			       " has over %d parameters",
			       PG_BATCH_MAX >> 20, PG_PARAMS_MAX);
	if (rv != 0)
		return err_set(err, rv, "out of memory");
	if (pg->state != PG_UP)
		return err_set(err, AVA_ECONNECT, "the database is not connected");
	if (pg->nbatches >= PG_WAIT_MAX || b->bytes.len > PG_BATCH_MAX - pg->bytes)
		return err_set(err, AVA_EBUSY, "the database has too much to answer");
	return 0;
}

int pg_send(struct pg *pg, struct pg_batch *b, pg_done_fn done, void *user, struct ava_error *err)
{
	int rv = pg_admit(pg, b, err);

	if (rv != 0) {
		pg_batch_free(b);
		return rv;
	}
	b->done = done;
	b->user = user;
	b->size = b->bytes.len;
	b->until_ms = os_now_ms(pg->loop) + pg->o.timeout_ms;
	pg->nbatches++;
	pg->bytes += b->size;
	list_add(&pg->waiting, &b->node);
	os_defer(pg->loop, &pg->turn);
	return 0;
}

/* ---- life */

/* Read the URL once, to refuse a bad one now. libpq quotes what it stumbles over, which may be a
 * piece of the password: quotes of more than a character are cut off. */
static int pg_parse(struct pg *pg, const char *url, struct ava_error *err)
{
	char *said = NULL, line[256];

	pg->parsed = pg->pq.PQconninfoParse(url, &said);
	if (pg->parsed)
		return 0;
	pg_line(line, sizeof(line), said ? said : "out of memory");
	pg->pq.PQfreemem(said);
	for (char *p = line; (p = strchr(p, '"')) != NULL; p += 3)
		if (p[1] == '\0' || p[2] != '"') {
			snprintf(p, sizeof(line) - (size_t)(p - line), "…");
			break;
		}
	return err_set(err, AVA_EINVAL,
		       "the URL of the database is not understood: write it as "
		       "postgresql://USER@HOST/DATABASE?sslmode=require (%s)",
		       line);
}

int pg_open(struct pg **out, struct os_loop *loop, const struct pg_options *o,
	    struct ava_error *err)
{
	struct pg *pg = calloc(1, sizeof(*pg));
	int rv;

	assert(o->timeout_ms > 0);
	if (!pg)
		return err_set(err, AVA_ENOMEM, "out of memory");
	pg->o = *o;
	pg->o.url = pg->o.name = pg->o.library = NULL;
	pg->loop = loop;
	list_init(&pg->waiting);
	list_init(&pg->under_way);
	os_task_init(&pg->turn, pg_turn_cb);
	rv = libpq_load(&pg->pq, o->library, err);
	if (rv != 0)
		goto fail;
	rv = pg_parse(pg, o->url, err);
	if (rv != 0)
		goto fail;
	pg->name = strdup(o->name);
	pg->timer = os_timer_new(loop, pg_timer_cb, pg);
	if (!pg->name || !pg->timer) {
		rv = err_set(err, AVA_ENOMEM, "out of memory");
		goto fail;
	}
	os_timer_set(pg->timer, 0);
	*out = pg;
	return 0;

fail:
	pg_free(pg);
	return rv;
}

void pg_close(struct pg *pg)
{
	if (!pg || pg->state == PG_CLOSED)
		return;
	pg->state = PG_CLOSED;
	os_poll_free(pg->poll);
	pg->poll = NULL;
	os_timer_free(pg->timer);
	pg->timer = NULL;
	pg_answer_all(pg, AVA_ECANCELED, "the connection was closed");
	os_defer(pg->loop, &pg->turn); /* a callback of this connection may be under way */
}

bool pg_is_up(const struct pg *pg)
{
	return pg->state == PG_UP;
}

bool pg_is_private(const struct pg *pg)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage storage;
	} peer;
	socklen_t len = sizeof(peer);

	if (pg->state != PG_UP)
		return false;
	if (pg->pq.PQsslInUse(pg->conn) || pg->pq.PQgssEncInUse(pg->conn))
		return true;
	if (getpeername(pg->pq.PQsocket(pg->conn), &peer.any, &len) != 0)
		return false;
	switch (peer.any.sa_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(peer.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&peer.in6.sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&peer.in6.sin6_addr) &&
			peer.in6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
	default:
		return false;
	}
}
