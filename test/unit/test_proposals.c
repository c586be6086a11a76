/* Answers that change a quote, through the routes: what is lowered runs, what
 * is raised is quoted again, and whatever is asked twice happens once. */
#include "gateway_rig.h"

#include "ava/ops.h"
#include "ava/proposal.h"

#define RUNS "/api/v1/runs"

static const char *confirm_path(const char *id)
{
	return rig_path("/api/v1/proposals/%s/confirm", id);
}

static const char *propose_with(const char *more, char id[64])
{
	char body[900];

	snprintf(body, sizeof(body),
		 "{\"task\":\"Where is main?\",\"role\":\"code_reviewer\",\"cwd\":\"%s\"%s}",
		 rig.src, more);
	return rig_ask_str("POST", RUNS, body, 201, "proposal_id", id);
}

static const char *propose(char id[64])
{
	return propose_with("", id);
}

static json_t *answer(const char *id, const char *words)
{
	char body[400];

	snprintf(body, sizeof(body), "{\"answer\":\"%s\"}", words);
	return rig_ask("POST", confirm_path(id), body, 200);
}

static void assert_refused(const char *id, const char *body, int status, const char *says)
{
	json_auto_t *v = rig_ask("POST", confirm_path(id), body, status);
	const char *text = json_get_str(json_object_get(v, "error"), "message");

	if (!text || !strstr(text, says))
		fail_msg("%s: %s, not %s", body, text, says);
}

static void assert_has(const json_t *v, const char *key, const char *want)
{
	const char *have = json_get_str(v, key);

	if (!have || strcmp(have, want) != 0)
		fail_msg("%s is \"%s\", not \"%s\"", key, have ? have : "(none)", want);
}

static void assert_state(const char *id, const char *want)
{
	json_auto_t *v = rig_ask("GET", rig_path("/api/v1/proposals/%s", id), NULL, 200);

	assert_has(v, "state", want);
}

static double limit_of(const json_t *config, const char *key)
{
	return json_number_value(json_object_get(json_object_get(config, "limits"), key));
}

/* The newest event of the type in Ava's log, as a new reference; *n of them. */
static json_t *event(const char *type, unsigned *n)
{
	struct ava_log_query q = {.root = rig.root, .types = type};
	struct ava_log_event e;
	struct ava_log *log;
	json_t *last = NULL;
	int rv;

	*n = 0;
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	while ((rv = ava_log_next(log, &e, NULL)) == 1) {
		json_decref(last);
		last = json_parse(e.line, e.len, NULL);
		++*n;
	}
	assert_int_equal(rv, 0);
	ava_log_close(log);
	return last;
}

static unsigned count(const char *type)
{
	unsigned n;

	json_decref(event(type, &n));
	return n;
}

static unsigned nruns(void)
{
	json_auto_t *v = rig_ask("GET", RUNS "?all", NULL, 200);
	unsigned n = (unsigned)json_array_size(json_object_get(v, "runs"));

	return n;
}

/* ---- what is lowered runs */

/* Line 1 of the conversation says what really runs. */
static void assert_runs(const char *run, const char *hash, double cents)
{
	char name[600], *text;
	json_t *line, *spec;
	size_t len;

	snprintf(name, sizeof(name), "%s/runs/%s/messages.jsonl", rig.root, run);
	text = unit_read(name, &len);
	line = json_parse(text, strcspn(text, "\n"), NULL);
	spec = json_object_get(line, "spec");
	assert_has(spec, "configHash", hash);
	assert_true(limit_of(spec, "costCents") == cents);
	json_decref(line);
	free(text);
}

TEST(a_lower_limit_runs)
{
	char p[64], quoted[64 + 1], hash[64 + 1], run[64];
	json_t *v, *e;
	unsigned n;

	propose(p);
	v = answer(p, "yes, but max 20 cents and 2 minutes");
	assert_has(v, "state", "confirmed");
	assert_has(v, "changes", "up to $0.20, at most 2 min");
	snprintf(run, sizeof(run), "%s", json_get_str(v, "subagent_id"));
	snprintf(hash, sizeof(hash), "%s", json_get_str(v, "confirmed_hash"));
	snprintf(quoted, sizeof(quoted), "%s", json_get_str(v, "config_hash"));
	json_decref(v);
	assert_string_not_equal(hash, quoted);
	assert_runs(run, hash, 20);
	e = event("SpawnConfirmed", &n);
	assert_int_equal(n, 1);
	v = json_object_get(e, "content");
	assert_has(v, "configHash", hash);
	assert_has(v, "quotedHash", quoted);
	assert_has(v, "subagentId", run);
	v = json_object_get(v, "config");
	assert_true(limit_of(v, "costCents") == 20 && limit_of(v, "seconds") == 120);
	json_decref(e);
	/* Again, from another channel, otherwise, and after a restart. */
	for (int i = 0; i < 2; i++) {
		v = answer(p, "yes but at most 120 seconds and 20c");
		assert_has(v, "subagent_id", run);
		json_decref(v);
		v = answer(p, "yes");
		assert_has(v, "subagent_id", run);
		assert_has(v, "changes", "up to $0.20, at most 2 min");
		json_decref(v);
		assert_refused(p, "{\"answer\":\"yes but max 10 cents\"}", 409,
			       "confirmed already");
		assert_refused(p, "{\"answer\":\"max 20 cents, 2 minutes\"}", 409,
			       "confirmed already");
		assert_refused(p, "{\"answer\":\"no\"}", 409, "confirmed already");
		rig_restart(false);
	}
	assert_int_equal(nruns(), 1);
	assert_int_equal(count("SpawnConfirmed"), 1);
}

TEST(each_kind_of_less)
{
	static const struct {
		const char *words, *changes;
	} cases[] = {
		{"yes but max 3 steps", "at most 3 replies"},
		{"yes but max 9k tokens", "at most 9k tokens"},
		{"yes, at most 90s", "at most 1 min 30 s"},
		{"yes but max 1.5 cents", "up to $0.0150"},
		{"yes, without search_and_read", "without search_and_read"},
		{"yes but quick", "up to $0.10"},
		{"yes, and thanks", ""},
		{"yes, up to $1", ""}, /* as quoted */
		{"yes, quick with max 5 cents", "up to $0.05"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char p[64];
		json_auto_t *v = NULL;

		print_message("%s\n", cases[i].words);
		v = answer(propose(p), cases[i].words);
		assert_has(v, "state", "confirmed");
		assert_has(v, "changes", cases[i].changes);
	}
	assert_int_equal(nruns(), ARRAY_LEN(cases));
}

/* ---- all else is quoted again */

TEST(a_raise_is_quoted_again)
{
	char p[64], q[64], again[64], run[64];
	json_t *v, *e;
	unsigned n;

	propose_with(",\"request_id\":\"one\"", p);
	v = answer(p, "yes but up to $5");
	assert_has(v, "state", "pending");
	assert_has(v, "replaces", p);
	assert_has(v, "subagent_id", "");
	assert_has(v, "changes", "up to $5.00");
	assert_non_null(json_get_str(v, "message"));
	snprintf(q, sizeof(q), "%s", json_get_str(v, "proposal_id"));
	json_decref(v);
	assert_string_not_equal(p, q);
	e = event("SpawnRejected", &n);
	assert_int_equal(n, 1);
	v = json_object_get(e, "content");
	assert_has(v, "proposalId", p);
	assert_has(v, "replacedBy", q);
	assert_non_null(strstr(json_get_str(v, "reason"), q));
	json_decref(e);
	assert_int_equal(nruns(), 0);
	/* The same answer again is the same new proposal, also after a restart. */
	for (int i = 0; i < 2; i++) {
		v = answer(p, "$5 max");
		assert_has(v, "proposal_id", q);
		json_decref(v);
		assert_refused(p, "{\"answer\":\"yes\"}", 410, "was replaced by P-");
		assert_refused(p, "{\"answer\":\"no\"}", 410, "was replaced by P-");
		assert_refused(p, "{\"answer\":\"yes but up to $6\"}", 410, "was replaced by P-");
		rig_restart(false);
	}
	/* And so is the request. */
	rig_ask_str("POST", RUNS, "{\"task\":\"x\",\"request_id\":\"one\"}", 200, "proposal_id",
		    again);
	assert_string_equal(again, q);
	v = answer(q, "yes");
	snprintf(run, sizeof(run), "%s", json_get_str(v, "subagent_id"));
	assert_runs(run, json_get_str(v, "config_hash"), 500);
	json_decref(v);
	assert_int_equal(nruns(), 1);
	assert_int_equal(count("SpawnProposed"), 2);
}

TEST(each_kind_of_otherwise)
{
	static const struct {
		const char *words, *key, *want; /* of the new config */
	} cases[] = {
		{"max 20 cents", NULL, NULL},
		{"4 minutes max", NULL, NULL},
		{"yes but deep", "preset", "deep"},
		{"as a researcher", "role", "researcher"},
		{"yes, as a researcher without read_file", "role", "researcher"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char p[64];
		json_t *v = answer(propose(p), cases[i].words), *config;

		print_message("%s\n", cases[i].words);
		assert_has(v, "state", "pending");
		assert_has(v, "replaces", p);
		config = json_object_get(v, "config");
		assert_has(config, "task", "Where is main?");
		if (cases[i].key)
			assert_has(config, cases[i].key, cases[i].want);
		json_decref(v);
	}
	assert_int_equal(nruns(), 0);
}

TEST(thinking)
{
	char p[64], body[600];
	json_t *v;

	/* A researcher thinks. */
	snprintf(body, sizeof(body), "{\"task\":\"t\",\"role\":\"researcher\",\"cwd\":\"%s\"}",
		 rig.src);
	rig_ask_str("POST", RUNS, body, 201, "proposal_id", p);
	v = answer(p, "yes but no thinking");
	assert_has(v, "state", "pending");
	assert_true(json_is_false(json_object_get(json_object_get(v, "config"), "thinking")));
	snprintf(p, sizeof(p), "%s", json_get_str(v, "proposal_id"));
	json_decref(v);
	/* It stays off when something else is lowered. */
	v = answer(p, "yes but max 5 cents");
	assert_has(v, "state", "confirmed");
	assert_has(v, "changes", "up to $0.05");
	json_decref(v);
}

/* ---- what cannot be */

TEST(not_understood_or_impossible)
{
	static const struct {
		const char *body, *says;
	} cases[] = {
		{"{\"answer\":\"yes?\"}", "please answer yes or no, or say what to change"},
		{"{\"answer\":\"\"}", "\"use haiku\", \"without read_file\""},
		{"{\"answer\":\"yes but cheaper\"}", "please answer yes or no"},
		{"{\"answer\":\"yes but ask me first\"}", "please answer yes or no"},
		{"{\"answer\":\"without fish\"}",
		 "there is no tool fish to leave out: this proposal has read_file"},
		{"{\"answer\":\"yes, without submit_result\"}", "there is no tool submit_result"},
		{"{\"answer\":\"use no-such-model\"}", "no-such-model"},
		{"{\"answer\":\"yes but at most 0 minutes\"}", "the time limit must be above 0"},
		{"{\"answer\":\"up to $1\"}", "already: answer yes or no"},
		{"{\"answer\":\"at most 9 days\"}", "limits are at most"},
		{"{\"answer\":\"no\",\"set\":{\"max_cost_cents\":5}}", "please answer yes or no"},
		{"{\"answer\":\"hm\",\"set\":{\"max_cost_cents\":5}}", "please answer yes or no"},
		{"{\"set\":{\"max_cost_cents\":-5}}", "the cost limit must be 0"},
		{"{\"set\":{\"preset\":\"huge\"}}", "there are quick, standard and deep"},
		{"{\"set\":{\"role\":\"cook\"}}", "unknown role cook"},
	};
	char p[64];

	propose(p);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(p, cases[i].body, 400, cases[i].says);
	assert_state(p, "pending");
	assert_int_equal(nruns(), 0);
	assert_int_equal(count("SpawnRejected"), 0);
}

static void expired_long_ago(void *arg)
{
	struct proposal *p = strmap_get(&rig.core->proposals, arg);

	p->expires_ms = 1; /* its timer is late */
}

TEST(too_late)
{
	char p[64];

	propose(p);
	rig_call(expired_long_ago, p);
	assert_refused(p, "{\"answer\":\"yes\"}", 410, "has expired: ask for a new one");
	assert_refused(p, "{\"answer\":\"yes but max 5 cents\"}", 410, "has expired");
	assert_refused(p, "{\"answer\":\"use no-such-model\"}", 410, "has expired");
	assert_int_equal(nruns(), 0);
}

/* Made while the clock was a year ahead: it waits no longer than one that is made now. */
TEST(clock_was_ahead)
{
	char p[64], before[16], today[16], name[600], *text, *at, year[8];
	const struct proposal *have;
	size_t len;

	do { /* a log has the name of a day, and midnight may be now */
		clock_local_date(clock_wall_ms(), before);
		propose(p);
		clock_local_date(clock_wall_ms(), today);
	} while (strcmp(before, today) != 0);
	rig_stop();
	snprintf(name, sizeof(name), "%s/logs/ava/%s.jsonl", rig.root, today);
	text = unit_read(name, &len);
	at = strstr(text, "\"eventType\":\"SpawnProposed\"");
	assert_non_null(at);
	while (at > text && at[-1] != '\n')
		at--;
	at += strlen("{\"timestamp\":\"");
	snprintf(year, sizeof(year), "%04d", (atoi(at) + 1) % 10000);
	memcpy(at, year, 4);
	unit_write(name, text, len);
	free(text);
	rig_start();
	have = strmap_get(&rig.core->proposals, p);
	assert_non_null(have);
	assert_true(have->created_ms <= clock_wall_ms());
	assert_true(have->expires_ms <= clock_wall_ms() + rig.settings.proposal_expiry_s * 1000);
	json_decref(answer(p, "yes"));
}

/* ---- keys instead of words */

TEST(set)
{
	char p[64];
	json_t *v;

	v = rig_ask("POST", confirm_path(propose(p)),
		    "{\"set\":{\"max_cost_cents\":20,\"timeout\":60,\"without\":[\"search_and_"
		    "read\"]}}",
		    200);
	assert_has(v, "state", "confirmed");
	assert_has(v, "changes", "up to $0.20, at most 1 min, without search_and_read");
	json_decref(v);
	v = rig_ask("POST", confirm_path(propose(p)), "{\"set\":{\"max_tokens\":99000000}}", 200);
	assert_has(v, "state", "pending");
	assert_has(v, "replaces", p);
	json_decref(v);
	v = rig_ask("POST", confirm_path(propose(p)),
		    "{\"answer\":\"max 20 cents\",\"set\":{\"timeout\":60}}", 200);
	assert_has(v, "state", "pending");
	assert_true(limit_of(json_object_get(v, "config"), "seconds") == 60);
	json_decref(v);
	assert_int_equal(nruns(), 1);
}

/* ---- what was seen */

TEST(a_yes_to_something_else_is_none)
{
	char p[64], seen[64 + 1], body[120];
	json_auto_t *v = NULL;

	propose(p);
	v = rig_ask("GET", rig_path("/api/v1/proposals/%s", p), NULL, 200);
	snprintf(seen, sizeof(seen), "%s", json_get_str(v, "config_hash"));
	for (int i = 0; i < 2; i++) {
		snprintf(body, sizeof(body), "{\"config_hash\":\"%.63s%c\"}", seen,
			 i == 1            ? seen[63]
			 : seen[63] == '0' ? '1'
					   : '0');
		json_decref(rig_ask("POST", confirm_path(p), body, i == 0 ? 409 : 200));
		assert_state(p, i == 0 ? "pending" : "confirmed");
	}
}

/* ---- what waits is bounded in bytes */

TEST(sixteen_megabytes_wait)
{
	static const char begins[] = "{\"task\":\"t\",\"context\":\"";
	size_t len = 1000000 + sizeof(begins) - 1;
	char *body = malloc(len + 3), first[64] = "", text[64];
	unsigned taken = 0;
	json_t *v;

	memset(body, 'k', len);
	memcpy(body, begins, sizeof(begins) - 1);
	memcpy(body + len, "\"}", 3);
	for (struct client_reply r; taken < 40; taken++) {
		assert_int_equal(client_request(rig.client, "POST", RUNS, body, &r, NULL), 0);
		if (r.status != 201) {
			assert_non_null(
				strstr(r.body, "that wait for an answer are 16 MB of text"));
			break;
		}
		v = json_parse(r.body, r.len, NULL);
		snprintf(first, sizeof(first), "%s", json_get_str(v, "proposal_id"));
		json_decref(v);
	}
	assert_in_range(taken, 10, 20);
	/* Rejected it holds no room any more. */
	rig_ask_str("POST", rig_path("/api/v1/proposals/%s/reject", first), NULL, 200, "state",
		    text);
	rig_ask_str("POST", RUNS, body, 201, "state", text);
	assert_string_equal(text, "pending");
	free(body);
}

/* ---- two channels at once */

struct heard {
	int rv;
	char run[32], id[32];
	sem_t sem;
};

static void hear(int rv, struct proposal *p, bool repeated, const struct ava_error *err, void *user)
{
	struct heard *h = user;

	h->rv = rv;
	snprintf(h->run, sizeof(h->run), "%s", rv == 0 ? p->run : "");
	snprintf(h->id, sizeof(h->id), "%s", rv == 0 ? p->id : "");
	sem_post(&h->sem);
}

struct both {
	const char *id, *words[2];
	struct heard heard[2];
};

static void say_both(void *arg)
{
	struct both *b = arg;

	for (int i = 0; i < 2; i++)
		ops_confirm(rig.core, b->id, b->words[i], NULL, "tester", "terminal", hear,
			    &b->heard[i]);
}

/* Both are said before the first is on disk. */
static void at_once(struct both *b, const char *first, const char *second)
{
	b->words[0] = first;
	b->words[1] = second;
	for (int i = 0; i < 2; i++)
		sem_init(&b->heard[i].sem, 0, 0);
	rig_call(say_both, b);
	for (int i = 0; i < 2; i++)
		while (sem_wait(&b->heard[i].sem) != 0)
			;
}

TEST(two_answers_at_once)
{
	static const struct {
		const char *first, *second;
		int rv; /* of the second; of the first it is 0 */
		unsigned runs;
	} cases[] = {
		{"yes", "yes", 0, 1},
		{"yes", "yes but max 20 cents", AVA_EBUSY, 1},
		{"yes but max 20 cents", "yes", 0, 1},
		{"yes but max 20 cents", "yes, 20c at most", 0, 1},
		{"yes but max 20 cents", "yes but max 10 cents", AVA_EBUSY, 1},
		{"yes but max 20 cents", "no", AVA_EBUSY, 1},
		{"yes but max 20 cents", "max 10 cents", AVA_EBUSY, 1},
		{"max 20 cents", "yes", AVA_EBUSY, 0},
		{"max 20 cents", "no", AVA_EBUSY, 0},
		{"max 20 cents", "max 20c", 0, 0},
		{"max 20 cents", "max 30 cents", AVA_EBUSY, 0},
		{"no", "yes but max 20 cents", AVA_EBUSY, 0},
		{"no", "max 20 cents", AVA_EBUSY, 0},
	};
	unsigned runs = 0;

	rig_restart(true);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct both b = {0};
		char p[64];

		b.id = propose(p);
		print_message("%s / %s\n", cases[i].first, cases[i].second);
		at_once(&b, cases[i].first, cases[i].second);
		assert_int_equal(b.heard[0].rv, 0);
		assert_int_equal(b.heard[1].rv, cases[i].rv);
		if (cases[i].rv == 0) {
			assert_string_equal(b.heard[0].run, b.heard[1].run);
			assert_string_equal(b.heard[0].id, b.heard[1].id);
		}
		runs += cases[i].runs;
	}
	assert_int_equal(nruns(), runs);
	assert_int_equal(count("SpawnConfirmed"), runs);
}

/* ---- who is asked */

TEST(policy)
{
	char p[64], q[64], run[64];
	json_auto_t *e = NULL;
	unsigned n;

	propose_with(",\"confirm\":\"always\"", p);
	propose_with(",\"confirm\":\"over_cents:0\",\"request_id\":\"r\"", p); /* offline is free */
	assert_state(p, "confirmed");
	rig_ask_str("GET", rig_path("/api/v1/proposals/%s", p), NULL, 200, "subagent_id", run);
	assert_int_equal(strncmp(run, "S-", 2), 0);
	e = event("SpawnConfirmed", &n);
	assert_int_equal(n, 1);
	assert_has(json_object_get(e, "content"), "by", "confirm of the request");
	/* The same request is the same run, also after a restart. */
	for (int i = 0; i < 2; i++) {
		rig_ask_str("POST", RUNS, "{\"task\":\"x\",\"request_id\":\"r\"}", 200,
			    "subagent_id", q);
		assert_string_equal(q, run);
		rig_restart(false);
	}
	assert_int_equal(nruns(), 1);
	rig.settings.confirm_over_cents = SETTINGS_CONFIRM_NEVER;
	rig_restart(false);
	propose_with("", p);
	propose_with(",\"confirm\":\"always\"", q);
	assert_state(p, "confirmed");
	assert_state(q, "pending");
	assert_int_equal(nruns(), 2);
	assert_int_equal(count("SubagentSpawn"), 2);
	json_decref(rig_ask("POST", RUNS, "{\"task\":\"x\",\"confirm\":\"over_cents:-1\"}", 400));
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);
