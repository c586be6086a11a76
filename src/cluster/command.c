/* Questions of a person to the database of a cluster, while no daemon of this root has to run: its
 * tables are made or printed, and its machines listed with what a commit means on that server. What
 * can fail is the connection, and tables that are not there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/sys.h"
#include "cluster/cluster.h"
#include "cluster/pg.h"
#include "cluster/schema.h"
#include "codec/json.h"
#include "os/loop.h"

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

/* The server's settings, and what a commit means with them. */
static void write_server(struct jw *w, const struct pg_result *r)
{
	const char *sync = pg_text(r, 0, 0, NULL), *standbys = pg_text(r, 0, 1, NULL);
	bool waits = sync && strcmp(sync, "off") != 0;

	jw_object(w, "server");
	jw_str(w, "version", pg_text(r, 0, 3, NULL));
	jw_str(w, "fsync", pg_text(r, 0, 2, NULL));
	jw_str(w, "synchronous_commit", sync);
	jw_str(w, "standbys", standbys);
	jw_str(w, "promise",
	       !waits ? "commits are not awaited: a crash of the server loses the newest ones; set "
			"synchronous_commit=on"
	       : standbys && *standbys
		       ? "a failover loses nothing that was acknowledged"
		       : "one server keeps everything; a failover to an asynchronous standby may "
			 "lose the newest commits, which live machines send again");
	jw_end(w);
}

/* A reason why a daemon with this URL would not be let in; "": none. */
static const char *refusal(const struct pg *pg, const struct pg_answer *a, char text[300])
{
	const char *fsync = pg_text(&a->results[2], 0, 2, NULL);
	int64_t schema = 0;

	(void)pg_int(&a->results[0], 0, 2, &schema);
	if (!pg_is_private(pg))
		return SCHEMA_NOT_PRIVATE;
	if (pg_rows(&a->results[0]) == 0)
		return SCHEMA_NO_TABLES;
	if (schema != SCHEMA_VERSION) {
		snprintf(text, 300, SCHEMA_OTHER, (long long)schema, SCHEMA_VERSION);
		return text;
	}
	return fsync && strcmp(fsync, "on") == 0 ? "" : SCHEMA_NO_FSYNC;
}

/* The node that this data root is; "": none. */
static void read_node(char out[40])
{
	char root[4096], *text = NULL;
	size_t len;
	int fd = settings_data_root(root, sizeof(root), NULL) == 0
			 ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			 : -1;
	json_t *o = fd >= 0 && sys_read_file(fd, CLUSTER_FILE, 4096, &text, &len, NULL) == 0
			    ? json_parse(text, len, NULL)
			    : NULL;

	snprintf(out, 40, "%s", json_str(o, "node"));
	json_decref(o);
	free(text);
	if (fd >= 0)
		close(fd);
}

static void write_nodes(struct jw *w, const struct pg_result *r)
{
	char own[40];

	read_node(own);
	jw_array(w, "machines");
	for (unsigned i = 0; i < pg_rows(r); i++) {
		int64_t n = 0;

		jw_object(w, NULL);
		jw_bool(w, "this", strcmp(pg_text(r, i, 0, NULL), own) == 0);
		jw_str(w, "node", pg_text(r, i, 0, NULL));
		jw_str(w, "name", pg_text(r, i, 1, NULL));
		jw_str(w, "version", pg_text(r, i, 2, NULL));
		(void)pg_int(r, i, 3, &n);
		jw_int(w, "epoch", n);
		if (pg_int(r, i, 4, &n))
			jw_fixed(w, "lease_seconds", n, 3);
		else
			jw_null(w, "lease_seconds");
		(void)pg_int(r, i, 5, &n);
		jw_bool(w, "alive", n != 0);
		(void)pg_int(r, i, 7, &n);
		jw_bool(w, "leaving", n != 0);
		(void)pg_int(r, i, 6, &n);
		jw_int(w, "runs", n);
		jw_words(w, "folders", pg_text(r, i, 8, NULL));
		jw_end(w);
	}
	jw_end(w);
}

/* Budgets, and what machines have borrowed of them: a row a loan, those of a budget together. */
static void write_budgets(struct jw *w, const struct pg_result *r)
{
	static const char *const money[] = {"cap_cents", "lent_cents", "used_cents"};
	const char *before = "";
	int64_t n = 0;

	jw_array(w, "budgets");
	for (unsigned i = 0; i < pg_rows(r); i++) {
		const char *scope = pg_text(r, i, 0, NULL), *machine = pg_text(r, i, 4, NULL);

		if (strcmp(scope, before) != 0) {
			if (i > 0) {
				jw_end(w);
				jw_end(w);
			}
			jw_object(w, NULL);
			jw_str(w, "scope", scope);
			for (unsigned k = 0; k < 3; k++) {
				(void)pg_int(r, i, k + 1, &n);
				jw_fixed(w, money[k], n, 4);
			}
			jw_array(w, "loans");
			before = scope;
		}
		if (!machine)
			continue;
		jw_object(w, NULL);
		jw_str(w, "machine", machine);
		(void)pg_int(r, i, 5, &n);
		jw_fixed(w, "lent_cents", n, 4);
		(void)pg_int(r, i, 6, &n);
		jw_fixed(w, "used_cents", n, 4);
		jw_end(w);
	}
	if (pg_rows(r) > 0) {
		jw_end(w);
		jw_end(w);
	}
	jw_end(w);
}

/* An array of objects: `names` of the columns in their order; a number is one where it stands. */
static void ask_write_rows(struct jw *w, const char *key, const struct pg_result *r,
			   const char *const *names)
{
	jw_array(w, key);
	for (unsigned i = 0; i < pg_rows(r); i++) {
		jw_object(w, NULL);
		for (unsigned k = 0; names[k]; k++) {
			int64_t n;

			if (pg_int(r, i, k, &n))
				jw_int(w, names[k], n);
			else
				jw_str(w, names[k], pg_text(r, i, k, NULL));
		}
		jw_end(w);
	}
	jw_end(w);
}

static void asking_write(struct database_ask *c, const struct pg_answer *a)
{
	static const char *const runs[] = {"live", "held", "ended"},
				 *const snapshots[] = {"pid", "application", "user", "seconds",
						       NULL},
				 *const doors[] = {"name", "machine", NULL},
				 *const tables[] = {"name", "bytes", "rows", "dead_rows", NULL};
	char text[300];
	struct jw w;
	int64_t n = 0;

	jw_init(&w, c->out);
	jw_object(&w, NULL);
	jw_str(&w, "id", pg_text(&a->results[0], 0, 0, NULL));
	jw_str(&w, "problem", refusal(c->pg, a, text));
	(void)pg_int(&a->results[0], 0, 1, &n);
	jw_int(&w, "generation", n);
	(void)pg_int(&a->results[0], 0, 2, &n);
	jw_int(&w, "schema", n);
	write_nodes(&w, &a->results[1]);
	write_server(&w, &a->results[2]);
	jw_object(&w, "runs");
	for (unsigned i = 0; i < 3; i++) {
		(void)pg_int(&a->results[3], 0, i, &n);
		jw_int(&w, runs[i], n);
	}
	jw_end(&w);
	write_budgets(&w, &a->results[7]);
	ask_write_rows(&w, "old_snapshots", &a->results[4], snapshots);
	ask_write_rows(&w, "tables", &a->results[5], tables);
	ask_write_rows(&w, "doors", &a->results[6], doors);
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
		c->rv = err_set(c->err, AVA_ENOENT, SCHEMA_NO_TABLES);
	else
		c->rv = err_set(c->err, a->rv, "%s", a->err->text);
}

static void ask_add_look(struct pg_batch *b)
{
	pg_batch_add(b, "select id, generation, schema from ava_cluster");
	pg_batch_add(b,
		     "select n.node, n.name, n.version, n.epoch,"
		     " case when n.lease_until > '-infinity' then"
		     "  (extract(epoch from n.lease_until - clock_timestamp()) * 1000)::bigint end,"
		     " (n.lease_until > clock_timestamp())::int::bigint,"
		     " (select count(*) from ava_run r where r.node = n.node and r.state < 9),"
		     " n.draining and n.lease_until > clock_timestamp(), n.folders"
		     " from ava_node n order by n.name, n.node");
	pg_batch_add(b, "select current_setting('synchronous_commit'),"
			" current_setting('synchronous_standby_names', true),"
			" current_setting('fsync'), current_setting('server_version')");
	pg_batch_add(b,
		     "select count(*) filter (where state = 0), count(*) filter (where state = 8),"
		     " count(*) filter (where state = 9) from ava_run");
	/* Rows that were changed stay in their table as long as somebody looks at an older state.
	 */
	pg_batch_add(b, "select pid, application_name, usename::text,"
			" extract(epoch from clock_timestamp() - xact_start)::bigint"
			" from pg_stat_activity where backend_xmin is not null"
			" and xact_start < clock_timestamp() - interval '1 minute'"
			" and pid <> pg_backend_pid() order by xact_start limit 20");
	pg_batch_add(b, "select relname::text, pg_total_relation_size(relid), n_live_tup,"
			" n_dead_tup from pg_stat_user_tables where schemaname = any("
			"current_schemas(false)) and relname like 'ava\\_%' order by relname");
	pg_batch_add(b, "select d.name, n.name from ava_door d join ava_node n using (node, epoch)"
			" where n.lease_until > clock_timestamp() order by d.name");
	/* At one time there are two days, by zone. */
	pg_batch_add(b, "select b.scope, b.cap, b.lent, (b.lent - coalesce(sum(l.micro - l.used)"
			"  over (partition by b.scope), 0))::bigint, coalesce(n.name, l.node),"
			"  l.micro, l.used from ava_budget b left join ava_loan l using (scope)"
			" left join ava_node n using (node) where b.scope in"
			"  (select scope from ava_budget order by scope desc limit 2)"
			" order by b.scope, n.name, l.node");
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
		c.rv = err_set(err, AVA_EDENIED, "%s", SCHEMA_NOT_PRIVATE);
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
