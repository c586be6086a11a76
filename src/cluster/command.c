/* Questions of a person to the database of a cluster, while no daemon of this root has to run: its
 * tables are made or printed, and its machines listed with what a commit means on that server. What
 * can fail is the connection, and tables that are not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/pg.h"
#include "cluster/schema.h"
#include "base/buf.h"
#include "os/loop.h"
#include "codec/json.h"

#define COMMAND_MS 15000

struct database_ask {
	struct pg *pg;
	bool up, answered;
	struct ava_error *err;
	int rv;
	const char *word;
	struct buf *out;
};

static void ask_up(void *user)
{
	((struct database_ask *)user)->up = true;
}

static void ask_down(const struct ava_error *why, void *user)
{
	struct database_ask *c = user;

	c->rv = err_set(c->err, why->code, "%s", why->text);
}

/* Which words a server says about what a commit means. */
static void write_server(struct jw *w, const struct pg_result *r)
{
	const char *sync = pg_text(r, 0, 0, NULL), *standbys = pg_text(r, 0, 1, NULL);
	bool waits = sync && strcmp(sync, "off") != 0;

	jw_str(w, "synchronousCommit", sync);
	jw_str(w, "standbys", standbys);
	jw_str(w, "promise",
	       !waits ? "commits are not awaited: a crash of the server loses the newest ones; set "
			"synchronous_commit=on"
	       : standbys && *standbys
		       ? "a failover loses nothing that was acknowledged"
		       : "one server keeps everything; a failover to an asynchronous standby may "
			 "lose the newest commits, which live machines send again");
}

static void write_nodes(struct jw *w, const struct pg_result *r)
{
	jw_array(w, "machines");
	for (unsigned i = 0; i < pg_rows(r); i++) {
		int64_t n = 0;

		jw_object(w, NULL);
		jw_str(w, "node", pg_text(r, i, 0, NULL));
		jw_str(w, "name", pg_text(r, i, 1, NULL));
		jw_str(w, "version", pg_text(r, i, 2, NULL));
		(void)pg_int(r, i, 3, &n);
		jw_int(w, "epoch", n);
		if (pg_int(r, i, 4, &n))
			jw_int(w, "leaseMs", n);
		else
			jw_null(w, "leaseMs");
		(void)pg_int(r, i, 5, &n);
		jw_bool(w, "alive", n != 0);
		(void)pg_int(r, i, 6, &n);
		jw_int(w, "runs", n);
		jw_end(w);
	}
	jw_end(w);
}

static void asking_write(struct database_ask *c, const struct pg_answer *a)
{
	struct jw w;
	int64_t n = 0;

	jw_init(&w, c->out);
	jw_object(&w, NULL);
	jw_str(&w, "cluster", pg_text(&a->results[0], 0, 0, NULL));
	(void)pg_int(&a->results[0], 0, 1, &n);
	jw_int(&w, "generation", n);
	write_nodes(&w, &a->results[1]);
	write_server(&w, &a->results[2]);
	(void)pg_int(&a->results[3], 0, 0, &n);
	jw_int(&w, "live", n);
	(void)pg_int(&a->results[3], 0, 1, &n);
	jw_int(&w, "held", n);
	(void)pg_int(&a->results[3], 0, 2, &n);
	jw_int(&w, "ended", n);
	jw_end(&w);
	buf_addc(c->out, '\n');
}

static void ask_done(const struct pg_answer *a, void *user)
{
	struct database_ask *c = user;

	c->answered = true;
	if (a->rv == 0)
		asking_write(c, a);
	else if (strcmp(a->sqlstate, "42P01") == 0)
		c->rv = err_set(c->err, AVA_ENOENT,
				"the database has no tables of ava yet: make them with `avad "
				"--cluster init`");
	else
		c->rv = err_set(c->err, a->rv, "%s", a->err->text);
}

static void ask_add_look(struct pg_batch *b)
{
	pg_batch_add(b, "select id, generation from ava_cluster");
	pg_batch_add(b,
		     "select n.node, n.name, n.version, n.epoch,"
		     " case when n.lease_until > '-infinity' then"
		     "  (extract(epoch from n.lease_until - clock_timestamp()) * 1000)::bigint end,"
		     " (n.lease_until > clock_timestamp())::int::bigint,"
		     " (select count(*) from ava_run r where r.node = n.node and r.state < 9)"
		     " from ava_node n order by n.name, n.node");
	pg_batch_add(b, "select current_setting('synchronous_commit'),"
			" current_setting('synchronous_standby_names', true)");
	pg_batch_add(b,
		     "select count(*) filter (where state = 0), count(*) filter (where state = 8),"
		     " count(*) filter (where state = 9) from ava_run");
}

/* The statements of the schema, one by one. */
static void ask_add_schema(struct pg_batch *b)
{
	const char *at = schema_sql, *end;
	char one[1024];

	while ((end = strstr(at, ";\n"))) {
		snprintf(one, sizeof(one), "%.*s", (int)(end - at), at);
		pg_batch_add(b, one);
		at = end + 2;
	}
}

/* Only an answer to the last statements counts: those of the schema stand before them. */
static void ask_made(const struct pg_answer *a, void *user)
{
	struct database_ask *c = user;
	struct pg_batch *b;

	if (a->rv != 0) {
		ask_done(a, user);
		return;
	}
	b = pg_batch_new();
	ask_add_look(b);
	c->rv = pg_send(c->pg, b, ask_done, c, c->err);
}

int cluster_command(const char *word, const char *url, struct os_loop *loop, struct buf *out,
		    struct ava_error *err)
{
	struct database_ask c = {.err = err, .word = word, .out = out};
	struct pg_options o = {.url = url,
			       .name = "ava",
			       .timeout_ms = COMMAND_MS,
			       .up = ask_up,
			       .down = ask_down,
			       .user = &c};
	bool init = strcmp(word, "init") == 0;
	struct pg_batch *b;

	if (strcmp(word, "print") == 0)
		return buf_adds(out, schema_sql);
	if (!init && strcmp(word, "status") != 0)
		return err_set(err, AVA_EINVAL, "--cluster: init, print or status, not \"%.40s\"",
			       word);
	if (!url || !*url)
		return err_set(
			err, AVA_EINVAL,
			"AVA_CLUSTER_URL is not set: put it into the environment or the file "
			"of keys, as postgresql://user@host/database");
	c.rv = pg_open(&c.pg, loop, &o, err);
	while (c.rv == 0 && !c.up)
		os_loop_step(loop, 100);
	if (c.rv == 0 && init && !pg_is_private(c.pg))
		c.rv = err_set(
			err, AVA_EDENIED,
			"the connection is neither local nor encrypted: add sslmode=require");
	if (c.rv == 0) {
		b = pg_batch_new();
		if (init)
			ask_add_schema(b);
		else
			ask_add_look(b);
		c.rv = pg_send(c.pg, b, init ? ask_made : ask_done, &c, err);
	}
	while (c.rv == 0 && !c.answered)
		os_loop_step(loop, 100);
	pg_close(c.pg);
	return c.rv;
}
