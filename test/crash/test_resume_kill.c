/* Runs killed at every call that changes the disk, the network, processes or the world: a group
 * of two with a tool that writes to a file outside, and one that asks a person. They
 * talk to the strict model service of test/mock, which refuses an invalid request and
 * one that does not extend the last. A child does the work until its k-th such call,
 * where it is gone without a word; a second child carries on what it finds, and is
 * killed as well, at a call that goes through all of them from one k to the next; a
 * third one finishes. Then every run has ended as without the kills: the same replies,
 * the same calls; the group was forked and joined once; no call was started twice;
 * what was answered was paid once, and only the calls in flight were charged an
 * estimate. */
#include "killdisk.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/tool.h"
#include "ava/core.h"
#include "ava/ops.h"
#include "ava/proposal.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/util.h"
#include "os/loop.h"
#include "provider/model.h"
#include "subagent/run.h"
#include "runs_now.h"

/* Each fifth call (AVA_SOAK=1 or AVA_RESUME_KILL_STEP=1: every one); under a sanitiser
 * fewer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEP 37
#else
#define STEP 5
#endif

#define RUNS        3
#define GROUPED     2 /* the first ones are of one group */
#define PATIENCE_MS 240000

/* ---- a world that kills, beside killdisk.h */

/* Those of the libraries: what leaves for the network. */
ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	kill_count();
	return syscall(SYS_sendto, fd, buf, n, flags, NULL, 0);
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	kill_count();
	return (int)syscall(SYS_connect, fd, to, len);
}

/* And a process: the command that is told of each end. */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
		    const posix_spawnattr_t *, char *const[], char *const[]);

	kill_count();
	*(void **)&real = dlsym(RTLD_NEXT, "posix_spawn");
	return real(pid, path, actions, attr, argv, envp);
}

/* ---- a tool that cannot be repeated: a line in a file for each start */

static char counter_path[400], said_path[400];

static void counter_start(struct tool_call *c)
{
	const struct run *r = c->env->user;
	char line[80];
	int n = snprintf(line, sizeof(line), "%s %s\n", r->id.text, c->id);
	int fd;

	kill_count();
	fd = open(counter_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	c->success = fd >= 0 && write(fd, line, (size_t)n) == n;
	if (fd >= 0)
		close(fd);
	kill_count();
	buf_addf(&c->out, "counted %s\n", line);
	for (int i = 0; i < 200; i++) /* more than an event shows */
		buf_addf(&c->out, "line %d of what was found\n", i);
	c->done(c);
}

static const struct tool counter = {
	.name = "search_and_read",
	.description = "Counts.",
	.schema = "{\"type\":\"object\",\"properties\":{\"pattern\":{\"type\":\"string\"}},"
		  "\"required\":[\"pattern\"],\"additionalProperties\":false}",
	.start = counter_start,
};

static bool counting; /* this group is at work */

const struct tool *__real_tool_find(const char *name);
const struct tool *__wrap_tool_find(const char *name);

const struct tool *__wrap_tool_find(const char *name)
{
	return counting && strcmp(name, counter.name) == 0 ? &counter : __real_tool_find(name);
}

/* ---- the child */

static const char *const plans[RUNS] = {
	"turns=2 calls=2 tool=search_and_read",
	"turns=3 calls=1 tool=search_and_read first=5",
	"turns=1 calls=1 tool=ask_person args={\"question\":\"Shall_I_go_on?\"}",
};

struct driver {
	struct core *core;
	char ids[RUNS][32], group[32];
	int spawned, ended;
	bool answering, heard;
};

static void on_spawn(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct driver *d = user;

	kill_must(rv, err, "not spawned");
	snprintf(d->ids[d->spawned++], sizeof(d->ids[0]), "%s", s->id);
}

static void on_result(int rv, const char *json, size_t len, const struct ava_error *err, void *user)
{
	struct driver *d = user;

	kill_must(rv, err, "no result");
	d->ended++;
}

/* Said with one request id, however often: on disk it is once. */
static void say(struct driver *d, const char *run, op_steered_fn done)
{
	const struct op_steer s = {
		.run = run,
		.text = "yes, go on",
		.by = "ben",
		.call_id = "c1.1",
		.request_id = "yes-1",
	};

	ops_steer(d->core, &s, done, d);
}

static void on_steer(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	struct driver *d = user;

	d->answering = false;
}

static void see(const struct op_status *s, void *user)
{
	struct driver *d = user;
	int fd;

	if (!s->asks || d->answering)
		return;
	d->answering = true;
	fd = open(said_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	say(d, s->id, on_steer);
}

static bool log_says(const char *dir, const char *run, const char *text)
{
	char path[400];
	size_t len;
	char *data;
	bool found;

	snprintf(path, sizeof(path), "%s/data/logs/subagents/%s.jsonl", dir, run);
	data = unit_read(path, &len);
	found = memmem(data, len, text, strlen(text)) != NULL;
	free(data);
	return found;
}

/* What was said before the process died, and nobody knows whether it was heard: if it
 * was, it is the answer, else the question may not be open yet. */
static void on_again(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	const struct driver *d = user;

	if (rv == 0 ? strcmp(s->outcome, "answered") == 0 : rv == AVA_ENOENT && !d->heard)
		return;
	fprintf(stderr, "said again: %s\n", rv == 0 ? s->outcome : err->text);
	_exit(5);
}

static void on_group(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		     void *user)
{
	struct driver *d = user;

	if (rv != 0 || p->step != STEP_CONFIRMED) {
		fprintf(stderr, "no group: %s\n", rv != 0 ? err->text : "it is not confirmed");
		_exit(3);
	}
	snprintf(d->group, sizeof(d->group), "%s", p->group_id);
}

/* GET /groups/{id}, as a client sees it. */
static void on_members(struct verb_reply *r, int status, const struct buf *json,
		       const struct ava_error *err)
{
	struct driver *d = r->waits;
	json_t *o = json ? json_parse(json->data, json->len, NULL) : NULL, *run;
	size_t i;

	json_array_foreach(json_object_get(o, "runs"), i, run)
	{
		if (d->spawned < GROUPED)
			snprintf(d->ids[d->spawned++], sizeof(d->ids[0]), "%s",
				 json_str(run, "subagent_id"));
	}
	json_decref(o);
	r->waits = NULL;
}

struct asking { /* strings of one request */
	char task[300], request[40], src[300];
};

static struct op_spawn spawn_of(int i, const char *dir, long k, struct asking *a)
{
	snprintf(a->task, sizeof(a->task), "Count for number %ld of sort %d. [[mock %s]]", k, i,
		 plans[i]);
	snprintf(a->request, sizeof(a->request), "r-%d", i);
	snprintf(a->src, sizeof(a->src), "%s/src", dir);
	return (struct op_spawn){.role = "researcher",
				 .task = a->task,
				 .cwd = a->src,
				 .model = "anthropic/claude-haiku-4-5",
				 .origin = "test",
				 .session_id = "s1",
				 .user_id = "ben",
				 .request_id = a->request,
				 .timeout_ms = 3600000,
				 .max_cost_microusd = 10000000,
				 .max_tokens = 10000000,
				 .max_iterations = AVA_DEFAULT};
}

static void ask_group(struct driver *d, const char *dir, long k)
{
	struct asking strings[GROUPED];
	struct op_spawn runs[GROUPED];
	struct op_group g = {.runs = runs,
			     .nruns = GROUPED,
			     .max_cost_microusd = 10000000,
			     .timeout_ms = 3600000,
			     .session_id = "s1",
			     .request_id = "r-group",
			     .user_id = "ben",
			     .origin = "test",
			     .confirm = "never"};

	for (int i = 0; i < GROUPED; i++)
		runs[i] = spawn_of(i, dir, k, &strings[i]);
	g.cwd = strings[0].src;
	ops_propose_group(d->core, &g, on_group, d);
}

static void ask_alone(struct driver *d, int i, const char *dir, long k)
{
	struct asking strings;
	struct op_spawn s = spawn_of(i, dir, k, &strings);

	ops_spawn(d->core, &s, on_spawn, d);
}

/* The same requests in each life: who was told already hears it again. */
static void ask_all(struct driver *d, struct os_loop *loop, const char *dir, long k)
{
	const struct caller ben = {.user = "ben", .channel = "test", .trust = CALLER_OWNER};
	struct verb_reply reply = {.done = on_members, .waits = d};
	char id[64], allowed[64], path[80];

	ask_group(d, dir, k);
	while (!d->group[0])
		os_loop_step(loop, 5);
	snprintf(path, sizeof(path), "/api/v1/groups/%s", d->group);
	verbs_call(d->core, verbs_find("GET", path, id, allowed), &ben, d->group, NULL, &reply);
	while (reply.waits)
		os_loop_step(loop, 5);
	if (d->spawned != GROUPED) {
		fprintf(stderr, "of the group %d runs are there\n", d->spawned);
		_exit(3);
	}
	for (int i = GROUPED; i < RUNS; i++) {
		ask_alone(d, i, dir, k);
		while (d->spawned == i)
			os_loop_step(loop, 5);
	}
	for (int i = 0; i < RUNS; i++)
		ops_result(d->core, d->ids[i], PATIENCE_MS, on_result, d);
}

static long number; /* of the test's life: what is asked for differs */

static int play(const char *dir, long at)
{
	char root[300];
	struct settings settings;
	struct core_options o = {.root = root, .settings = &settings, .notify = "/bin/true\0"};
	struct ava_error err = {0};
	struct driver d = {0};
	int64_t until = clock_mono_ms() + PATIENCE_MS;

	snprintf(root, sizeof(root), "%s/data", dir);
	snprintf(counter_path, sizeof(counter_path), "%s/counter", dir);
	snprintf(said_path, sizeof(said_path), "%s/said", dir);
	settings_defaults(&settings);
	settings.disk_free_min_mb = 0;
	settings.disk_ballast_mb = 0;
	settings.runs_max = 2;
	o.loop = os_loop_new(NULL);
	if (at > 0)
		kill_arm(at);
	kill_must(core_open(&d.core, &o, &err), &err, "core_open");
	ask_all(&d, o.loop, dir, number);
	if (access(said_path, F_OK) == 0) {
		d.heard = log_says(dir, d.ids[RUNS - 1], "\"outcome\":\"answered\"");
		say(&d, d.ids[RUNS - 1], on_again);
	}
	while (d.ended < RUNS && clock_mono_ms() < until) {
		run_now(d.core, d.ids[RUNS - 1], see, &d, NULL);
		os_loop_step(o.loop, 5);
	}
	core_close(d.core);
	os_loop_free(o.loop);
	return d.ended == RUNS ? 0 : 4;
}

/* ---- the service */

static pid_t mock_pid;
static int mock_port;

static void mock_start(void)
{
	const char *path = getenv("MOCK_MODELS");
	char text[2000] = "", *at = NULL;
	size_t have = 0;
	int fds[2];

	assert_non_null(path);
	assert_int_equal(pipe(fds), 0);
	mock_pid = fork();
	assert_true(mock_pid >= 0);
	if (mock_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(fds[1], 1);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while (at == NULL || strchr(at, '\n') == NULL) {
		ssize_t n = read(fds[0], text + have, sizeof(text) - 1 - have);

		assert_true(n > 0);
		have += (size_t)n;
		text[have] = 0;
		at = strstr(text, "http://127.0.0.1:");
	}
	mock_port = atoi(at + strlen("http://127.0.0.1:"));
	*strchr(at, '\n') = 0;
	setenv("ANTHROPIC_BASE_URL", at, 1);
	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
}

static json_t *mock_stats(void)
{
	static const char ask[] = "GET /stats HTTP/1.1\r\nHost: x\r\n\r\n";
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)mock_port)};
	char text[8000] = "", *from;
	size_t have = 0;
	ssize_t n;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	json_t *o;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(write(fd, ask, sizeof(ask) - 1), sizeof(ask) - 1);
	do { /* it may keep the connection */
		n = read(fd, text + have, sizeof(text) - 1 - have);
		assert_true(n > 0);
		have += (size_t)n;
		text[have] = 0;
		from = strchr(text, '{');
		o = from ? json_parse(from, strlen(from), NULL) : NULL;
	} while (!o);
	close(fd);
	return o;
}

/* ---- what must be there afterwards */

struct seen {
	long k;
	char id[32];
	int sort; /* of plans */
	int replies, cut, calls, results, interrupted, ends, answered, said;
	int64_t exact, estimated, total; /* micro-USD */
};

static void see_event(struct seen *s, const json_t *e)
{
	const char *type = json_get_str(e, "eventType");
	const json_t *c = json_object_get(e, "content"), *m = json_object_get(e, "metadata");
	int64_t cost = json_get_fixed(m, "costCents", 4, 0);
	const char *cls = json_get_str(c, "errorClass"), *state = json_get_str(c, "state");
	const char *task = json_get_str(c, "task");

	if (strcmp(type, "SubagentSpawn") == 0) {
		s->sort = atoi(strstr(task, "of sort ") + 8);
	} else if (strcmp(type, "InferEnd") == 0) {
		bool guess = json_get_bool(c, "estimated", false);

		s->replies += cls == NULL;
		s->cut += cls != NULL;
		s->exact += guess ? 0 : cost;
		s->estimated += guess ? cost : 0;
		if ((cls != NULL) != guess || (cls && strcmp(cls, "interrupted") != 0))
			fail_msg("k = %ld: %s: a call ended as %s", s->k, s->id, cls ? cls : "");
	} else if (strcmp(type, "ToolCall") == 0) {
		s->calls++;
	} else if (strcmp(type, "ToolResult") == 0) {
		s->results++;
		s->interrupted += cls && strcmp(cls, "interrupted") == 0;
	} else if (strcmp(type, "Steering") == 0) {
		s->said++;
	} else if (strcmp(type, "Waiting") == 0) {
		s->answered += strcmp(state, "answered") == 0;
	} else if (strcmp(type, "SubagentComplete") == 0) {
		s->ends++;
		s->total = json_get_fixed(json_object_get(c, "totals"), "costCents", 4, -1);
		if (strcmp(json_get_str(c, "stopReason"), "submitted") != 0)
			fail_msg("k = %ld: %s ended as %s", s->k, s->id,
				 json_get_str(c, "stopReason"));
	}
}

static void on_event(const json_t *o, void *user)
{
	see_event(user, o);
}

struct rows {
	char ids[RUNS][32];
	int spawns, ends, forks, joins;
};

static void on_row(const json_t *o, void *user)
{
	struct rows *r = user;
	bool spawn = strcmp(json_get_str(o, "row"), "spawn") == 0;

	if (spawn && r->spawns < RUNS)
		snprintf(r->ids[r->spawns], sizeof(r->ids[0]), "%s", json_get_str(o, "id"));
	r->spawns += spawn;
	r->ends += !spawn;
}

static void on_day(const json_t *o, void *user)
{
	struct rows *r = user;
	const char *type = json_get_str(o, "eventType");

	r->forks += strcmp(type, "Fork") == 0;
	r->joins += strcmp(type, "Join") == 0;
}

/* Each line of the file once: no call was begun twice. Returns how many. */
static int starts_of(const char *dir, const char *run, long k)
{
	char path[400];
	char *data, *line, *save = NULL;
	int n = 0;
	size_t len;

	snprintf(path, sizeof(path), "%s/counter", dir);
	if (access(path, F_OK) != 0)
		return 0;
	data = unit_read(path, &len);
	for (line = strtok_r(data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		n += strncmp(line, run, strlen(run)) == 0;
		if (save && strstr(save, line) != NULL)
			fail_msg("k = %ld: %s was started twice", k, line);
	}
	free(data);
	return n;
}

static void check_run(const char *dir, const char *id, long k, int kills, struct seen *s)
{
	static const int replies[RUNS] = {3, 4, 2}, calls[RUNS] = {5, 4, 2};
	char path[400];
	int starts;

	*s = (struct seen){.k = k};
	snprintf(s->id, sizeof(s->id), "%s", id);
	snprintf(path, sizeof(path), "%s/data/logs/subagents/%s.jsonl", dir, id);
	kill_each_line(path, on_event, s);
	if (s->replies != replies[s->sort] || s->calls != calls[s->sort] ||
	    s->results != s->calls || s->ends != 1)
		fail_msg("k = %ld: sort %d: %d replies, %d calls, %d results, %d ends", k, s->sort,
			 s->replies, s->calls, s->results, s->ends);
	if (s->total != s->exact + s->estimated)
		fail_msg("k = %ld: %s: total %lld of %lld + %lld", k, id, (long long)s->total,
			 (long long)s->exact, (long long)s->estimated);
	starts = starts_of(dir, id, k);
	if (s->sort < 2 && (starts < s->calls - 1 - s->interrupted || starts > s->calls - 1))
		fail_msg("k = %ld: %s: %d starts of %d calls, %d interrupted", k, id, starts,
			 s->calls - 1, s->interrupted);
	if (s->sort == 2 && (s->answered != 1 || s->said != 1))
		fail_msg("k = %ld: %s: answered %d times, %d times said", k, id, s->answered,
			 s->said);
	if (s->cut > kills || s->interrupted > 2 * kills)
		fail_msg("k = %ld: %s: %d calls cut, %d interrupted", k, id, s->cut,
			 s->interrupted);
}

static struct {
	long kills, second, cut, interrupted;
	int64_t billed;
} sums;

static void check(const char *dir, long k, int kills)
{
	char path[400];
	struct rows rows = {0};
	struct seen s;
	int64_t exact = 0, billed;
	int cut = 0, replies = 0;
	json_auto_t *stats = NULL;

	snprintf(path, sizeof(path), "%s/data/catalog.jsonl", dir);
	kill_each_line(path, on_row, &rows);
	assert_int_equal(rows.spawns, RUNS);
	assert_int_equal(rows.ends, RUNS);
	kill_each_day(dir, on_day, &rows);
	if (rows.forks != 1 || rows.joins != 1)
		fail_msg("k = %ld: %d forks, %d joins", k, rows.forks, rows.joins);
	for (int i = 0; i < RUNS; i++) {
		check_run(dir, rows.ids[i], k, kills, &s);
		exact += s.exact;
		cut += s.cut;
		replies += s.replies;
		sums.interrupted += s.interrupted;
	}
	stats = mock_stats();
	if (json_get_int(stats, "refused", -1) != 0 || json_get_int(stats, "prefixBroken", -1) != 0)
		fail_msg("k = %ld: %lld requests refused, %lld do not extend the last", k,
			 (long long)json_get_int(stats, "refused", -1),
			 (long long)json_get_int(stats, "prefixBroken", -1));
	billed = json_get_int(stats, "costMicroUsd", 0) - sums.billed;
	sums.billed += billed;
	sums.cut += cut;
	/* A fraction of a micro-USD is rounded up in each reply. */
	if (exact > billed + replies || (cut == 0 && exact < billed))
		fail_msg("k = %ld: billed %lld, counted %lld, %d calls cut", k, (long long)billed,
			 (long long)exact, cut);
}

TEST(untouched)
{
	const char *dir = kill_fresh();

	number = 0;
	assert_int_equal(kill_child(play, dir, 0), 0);
	check(dir, 0, 0);
	assert_int_equal(sums.cut, 0);
	assert_int_equal(sums.interrupted, 0);
	unit_rmdir(dir);
}

/* What is left is carried on, and that is killed as well, at its k2-th call. */
static int carry_on(const char *dir, long k, long k2)
{
	int rv = kill_child(play, dir, k2);

	sums.second += rv == -1;
	if (rv == -1)
		rv = kill_child(play, dir, 0) == 0 ? -1 : 1;
	if (rv > 0)
		fail_msg("k = %ld, then %ld: what was left could not be carried on", k, k2);
	return rv;
}

/* Killed at its k-th call, then at the k2-th. The number of kills; 0: it had ended. */
static int kill_twice(const char *dir, long k, long k2)
{
	int kills = 0;

	number = k;
	if (kill_child(play, dir, k) == -1) {
		kills = carry_on(dir, k, k2) == -1 ? 2 : 1;
		sums.kills++;
	}
	check(dir, k, kills);
	return kills;
}

/* All calls of the first life, and beside them all of the second. */
static long kill_at_all(long by, long k2)
{
	int kills = 1;
	long k;

	for (k = 1; kills > 0; k += by) {
		const char *dir = kill_fresh();

		kills = kill_twice(dir, k, k2);
		k2 = kills == 2 ? k2 + by : 1; /* else it had ended before */
		unit_rmdir(dir);
	}
	return k - by;
}

/* AVA_SOAK: four times, so that other calls of the second life meet those of the first. */
TEST(killed)
{
	const char *step = getenv("AVA_RESUME_KILL_STEP");
	long by = step ? atol(step) : getenv("AVA_SOAK") ? 1 : STEP, calls = 0;
	int rounds = getenv("AVA_SOAK") ? 4 : 1;

	for (int i = 0; i < rounds; i++)
		calls = kill_at_all(by, 1 + i * (calls / rounds));
	print_message("figure resume_kills %ld\nfigure resume_kills_again %ld\n"
		      "figure resume_kill_calls %ld\nfigure resume_kill_cut %ld\n"
		      "figure resume_kill_interrupted %ld\n",
		      sums.kills, sums.second, calls, sums.cut, sums.interrupted);
	assert_true(sums.kills > 100 / by);
	if (sums.kills > 40) /* else it may be that none fell into a call */
		assert_true(sums.cut > 0 && sums.second > 0);
}

static int set_up(void **state)
{
	counting = true;
	mock_start();
	assert_int_equal(provider_configure(NULL), 0);
	return kill_in_memory(state);
}

static int tear_down(void **state)
{
	kill(mock_pid, SIGTERM);
	waitpid(mock_pid, NULL, 0);
	return 0;
}

UNIT_GROUP(.first = set_up, .last = tear_down);
