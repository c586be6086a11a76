/* The HTTP client over TLS, against mock-models (test/mock): who is trusted,
 * how many connections HTTP/2 takes, and how names become addresses. */
#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "http_rig.h"

extern char **environ;

/* ---- the mock */

static struct {
	pid_t pid;
	char dir[300], ca[400];
	char url[8][2][64]; /* "tls", "https://127.0.0.1:41995" */
} mock;

static const char *mock_url(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(mock.url); i++)
		if (strcmp(mock.url[i][0], name) == 0)
			return mock.url[i][1];
	fail_msg("the mock has no %s", name);
	return NULL;
}

static int mock_start(void **state)
{
	const char *program = getenv("MOCK_MODELS");
	char *argv[] = {(char *)"mock-models",
			(char *)"--tls",
			(char *)"--ca",
			mock.ca,
			(char *)"--tls-bad",
			(char *)"expired",
			(char *)"--tls-bad",
			(char *)"name",
			(char *)"--tls-bad",
			(char *)"self",
			(char *)"--tls-bad",
			(char *)"garbage",
			(char *)"--quiet",
			(char *)"--with-parent",
			NULL};
	posix_spawn_file_actions_t files;
	char line[600];
	size_t n = 0;
	int out[2];
	FILE *f;

	(void)state;
	assert_non_null(program);
	snprintf(mock.dir, sizeof(mock.dir), "%s", unit_tmpdir());
	snprintf(mock.ca, sizeof(mock.ca), "%s/ca.pem", mock.dir);
	assert_int_equal(pipe(out), 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	posix_spawn_file_actions_addclose(&files, out[0]);
	assert_int_equal(posix_spawn(&mock.pid, program, &files, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&files);
	close(out[1]);
	f = fdopen(out[0], "r");
	while (fgets(line, sizeof(line), f) && strcmp(line, "ready\n") != 0)
		if (n < ARRAY_LEN(mock.url) &&
		    sscanf(line, "%63s %63s", mock.url[n][0], mock.url[n][1]) == 2)
			n++;
	fclose(f);
	assert_true(n >= 6);
	return 0;
}

static int mock_stop(void **state)
{
	(void)state;
	kill(mock.pid, SIGTERM);
	waitpid(mock.pid, NULL, 0);
	unit_rmdir(mock.dir);
	return 0;
}

static void use(struct fixture *f, const char *url, const char *ca_file, bool http2)
{
	rig_pool(f,
		 (struct http_pool_options){.base_url = url, .ca_file = ca_file, .http2 = http2});
}

/* One GET that must end as said, with words of that kind. */
static void get(struct fixture *f, int rv, const char *text)
{
	struct got g;

	got_init(&g, f);
	g.call.method = "GET";
	g.call.path = "/local/health";
	g.call.timers.connect_ms = 60000; /* however slow this machine is */
	got_run(&g);
	if (g.rv != rv || !strstr(g.text, text))
		fail_msg("%d \"%s\", not %d \"%s\"", g.rv, g.text, rv, text);
	assert_int_equal(g.call.status, rv == 0 ? 200 : 0);
	got_fini(&g);
}

/* ---- trust */

TEST_OF(trusted, struct fixture *f)
{
	for (int http2 = 0; http2 < 2; http2++) {
		use(f, mock_url("tls"), mock.ca, http2);
		get(f, 0, "");
		get(f, 0, "");
	}
	/* The file named in the environment, where none is given. */
	setenv("SSL_CERT_FILE", mock.ca, 1);
	use(f, mock_url("tls"), NULL, true);
	get(f, 0, "");
	unsetenv("SSL_CERT_FILE");
}

TEST_OF(refused, struct fixture *f)
{
	use(f, mock_url("expired"), mock.ca, true);
	get(f, AVA_EDENIED, "has expired: check this machine's clock");
	use(f, mock_url("name"), mock.ca, true);
	get(f, AVA_EDENIED, "is for another host: check the address");
	use(f, mock_url("self"), mock.ca, true);
	get(f, AVA_EDENIED, "is not trusted (self-signed certificate): if the server");
	use(f, mock_url("garbage"), mock.ca, true);
	get(f, AVA_ECONNECT, "cannot connect to 127.0.0.1: what answers there does not speak TLS");
	use(f, mock_url("tls"), NULL, true); /* the system does not know the mock's CA */
	get(f, AVA_EDENIED, "name its CA in SSL_CERT_FILE");
}

TEST_OF(ca_files, struct fixture *f)
{
	struct http_pool_options o = {.base_url = mock_url("tls"), .ca_file = "/nowhere/ca.pem"};
	struct ava_error err;
	char path[400];

	assert_null(http_pool_new(f->client, &o, &err));
	assert_int_equal(err.code, AVA_ENOENT);
	assert_non_null(strstr(err.text, "CA certificates in /nowhere/ca.pem"));
	snprintf(path, sizeof(path), "%s/broken.pem", mock.dir);
	unit_write(path, "no certificate", 14);
	use(f, mock_url("tls"), path, true);
	get(f, AVA_EDENIED, "cannot read the CA certificates in");
}

/* ---- HTTP/2 */

static struct got *get_many(struct fixture *f, size_t n)
{
	struct got *g = calloc(n, sizeof(*g));

	assert_non_null(g);
	for (size_t i = 0; i < n; i++) {
		got_init(&g[i], f);
		g[i].call.method = "GET";
		g[i].call.path = "/local/health";
		g[i].call.timers.connect_ms = 60000; /* so many handshakes take their time */
		got_start(&g[i]);
	}
	return g;
}

static void wait_many(struct got *g, size_t n, int rv)
{
	for (size_t i = 0; i < n; i++) {
		got_wait(&g[i]);
		if (g[i].rv != rv)
			fail_msg("call %zu: %d %s", i, g[i].rv, g[i].text);
		got_fini(&g[i]);
	}
	free(g);
}

TEST_OF(multiplexed, struct fixture *f)
{
	struct http_pool_stats stats;

	use(f, mock_url("tls"), mock.ca, true);
	for (int round = 0; round < 2; round++) {
		wait_many(get_many(f, 250), 250, 0);
		http_pool_stats(f->pool, &stats);
		assert_in_range(stats.opened, 1, 10); /* 3, more where answers are slow */
	}
	use(f, mock_url("tls"), mock.ca, false);
	wait_many(get_many(f, 20), 20, 0);
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.opened, 20);
}

/* Streams broken off and begun beside others that go on. */
TEST_OF(stop_streams, struct fixture *f)
{
	use(f, mock_url("tls"), mock.ca, true);
	for (int turns = 0; turns < 30; turns++) {
		struct got *g = get_many(f, 40);

		for (int i = 0; i < turns; i++)
			os_loop_step(f->loop, 1);
		for (size_t i = 0; i < 40; i += 2)
			http_call_stop(&g[i].call);
		for (size_t i = 1; i < 40; i += 2) {
			got_wait(&g[i]);
			assert_int_equal(g[i].rv, 0);
		}
		for (size_t i = 0; i < 40; i++)
			got_fini(&g[i]);
		free(g);
	}
}

/* Streams the service breaks off fail alone; those beside them are whole. */
TEST_OF(broken_streams, struct fixture *f)
{
	static const char *const headers[] = {"content-type: application/json",
					      "authorization: Bearer none"};

	for (int http2 = 0; http2 < 2; http2++) {
		struct got g[20];

		use(f, mock_url("tls"), mock.ca, http2);
		for (size_t i = 0; i < ARRAY_LEN(g); i++) {
			got_init(&g[i], f);
			g[i].call.path = "/local/v1/chat/completions";
			g[i].call.headers = headers;
			g[i].call.nheaders = 2;
			buf_addf(&g[i].call.body,
				 "{\"model\":\"m%s\",\"stream\":true,\"messages\":[{\"role\":"
				 "\"user\",\"content\":\"task %zu of %d\"}]}",
				 i % 2 ? "+fault=cut:200" : "", i, http2);
			got_start(&g[i]);
		}
		for (size_t i = 0; i < ARRAY_LEN(g); i++) {
			bool ended;

			/* A reset may overtake the bytes before it. The end of a stream that
			 * was reset with them is 0 from libcurl 7.88 now and then. */
			got_wait(&g[i]);
			ended = g[i].body.data && strstr(g[i].body.data, "data: [DONE]");
			assert_int_equal(ended, i % 2 == 0);
			if (g[i].rv != (ended ? 0 : AVA_EIO) && !(g[i].rv == 0 && http2))
				fail_msg("call %zu: %d %s", i, g[i].rv, g[i].text);
			got_fini(&g[i]);
		}
	}
}

struct helper {
	pid_t pid;
	int in, out;
};

/* Start a server in Python beside this file; its address into `url`. */
static struct helper helper_start(const char *name, const char *arg, char *url, size_t size)
{
	char *argv[] = {(char *)name, mock.dir, (char *)arg, NULL};
	posix_spawn_file_actions_t files;
	char program[4200], port[16] = "";
	struct helper h;
	int in[2], out[2];

	snprintf(program, sizeof(program), "%s/test/unit/%s", getenv("SRCDIR"), name);
	assert_int_equal(pipe(in) | pipe(out), 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	posix_spawn_file_actions_addclose(&files, in[1]);
	assert_int_equal(posix_spawn(&h.pid, program, &files, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&files);
	close(in[0]);
	close(out[1]);
	h.in = in[1];
	h.out = out[0];
	assert_true(read(h.out, port, sizeof(port) - 1) > 0);
	snprintf(url, size, "https://127.0.0.1:%d", atoi(port));
	return h;
}

static void helper_end(const struct helper *h)
{
	close(h->in);
	close(h->out);
	waitpid(h->pid, NULL, 0);
}

/* A server that speaks HTTP/1.1 after all, and answers only when all calls have
 * come: libcurl would hand them out one by one over the first connection. */
TEST_OF(no_http2_there, struct fixture *f)
{
	struct http_pool_stats stats;
	char ca[400], url[64];
	struct helper h = helper_start("tls_http1.py", "12", url, sizeof(url));

	snprintf(ca, sizeof(ca), "%s/http1.pem", mock.dir);
	use(f, url, ca, true);
	wait_many(get_many(f, 12), 12, 0);
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.opened, 12);
	wait_many(get_many(f, 12), 12, 0); /* it has learned */
	helper_end(&h);
}

/* A server that lets go of streams and connections: a call is answered or fails
 * as a broken connection does, for the caller to repeat, and the next one is
 * never lost with it. */
TEST_OF(let_go, struct fixture *f)
{
	static const struct {
		const char *body; /* what becomes of it: see tls_http2.py */
		int rv;
		bool either; /* repeated in here, if the machine is not too slow */
	} cases[] = {
		{"refuse", 0, true},          {"hello", 0, false},    {"last", 0, false},
		{"after it", 0, false}, /* libcurl would begin it on the same connection */
		{"internal", AVA_EIO, false}, {"internal", 0, false}, {"refused", 0, true},
		{"hello", 0, false},          {"break", 0, true},     {"hello", 0, false},
	};
	struct http_pool_stats stats;
	char ca[400], url[64];
	struct helper h = helper_start("tls_http2.py", NULL, url, sizeof(url));

	snprintf(ca, sizeof(ca), "%s/http2.pem", mock.dir);
	use(f, url, ca, true);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct got g;

		got_init(&g, f);
		buf_adds(&g.call.body, cases[i].body);
		got_run(&g);
		print_message("%s: %d %s\n", cases[i].body, g.rv, g.text);
		if (g.rv != AVA_EIO || !cases[i].either)
			assert_int_equal(g.rv, cases[i].rv);
		assert_int_equal(g.call.status, g.rv == 0 ? 200 : 0);
		got_fini(&g);
	}
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.calls, 0);
	helper_end(&h);
}

/* ---- what is forgotten */

/* In memory that can be written, but for the stack. */
static bool somewhere(const char *needle)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[400];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (strstr(line, " rw-p ") && !strchr(line, '/') && !strstr(line, "[stack]") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2)
			found = memmem((void *)from, to - from, needle, strlen(needle)) != NULL;
	}
	fclose(f);
	return found;
}

/* A request without a body goes through libcurl's upload buffer as well. (With HTTP/2 the
 * headers are in nghttp2's own memory, too, which nobody wipes.) */
TEST_OF(key_is_wiped, struct fixture *f)
{
	static const char *const headers[] = {"x-api-key: CANARY-0123456789abcdef"};
	struct got g;

	if (UNIT_SANITIZED)
		skip(); /* all memory is looked through */
	use(f, mock_url("tls"), mock.ca, false);
	got_init(&g, f);
	g.call.method = "GET";
	g.call.path = "/local/health";
	g.call.headers = headers;
	g.call.nheaders = 1;
	got_start(&g);
	assert_true(somewhere(headers[0] + 11)); /* it can be found */
	got_wait(&g);
	assert_int_equal(g.rv, 0);
	got_fini(&g);
	http_pool_free(f->pool);
	f->pool = NULL;
	os_loop_step(f->loop, 0);
	assert_false(somewhere(headers[0] + 11));
}

/* ---- names */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int calls, rv;
	bool hold;   /* lookups wait until it is cleared */
	char to[64]; /* the address they find; several apart by blanks */
} dns = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static int resolve(const char *host, const char *port, const struct addrinfo *hints,
		   struct addrinfo **out)
{
	char to[64];
	int rv;

	if (strcmp(host, "api.example.test") != 0)
		return rig_getaddrinfo(host, port, hints, out);
	pthread_mutex_lock(&dns.lock);
	dns.calls++;
	while (dns.hold)
		pthread_cond_wait(&dns.cond, &dns.lock);
	rv = dns.rv;
	snprintf(to, sizeof(to), "%s", dns.to);
	pthread_mutex_unlock(&dns.lock);
	return rv ? rv : rig_getaddrinfo(to, port, hints, out);
}

static void dns_set(int rv, const char *to, bool hold)
{
	pthread_mutex_lock(&dns.lock);
	dns.rv = rv;
	dns.hold = hold;
	snprintf(dns.to, sizeof(dns.to), "%s", to);
	pthread_cond_broadcast(&dns.cond);
	pthread_mutex_unlock(&dns.lock);
}

/* The mock under a name of its own; its certificate is for another, which
 * shows that the connection came about and that the name was checked. */
static void use_name(struct fixture *f)
{
	char url[100];

	dns.calls = 0;
	dns_set(0, "127.0.0.1", false);
	snprintf(url, sizeof(url), "https://api.example.test:%s",
		 strrchr(mock_url("tls"), ':') + 1);
	use(f, url, mock.ca, true);
}

#define REACHED AVA_EDENIED, "is for another host"

/* The others wait for the first connection, and it for one lookup; none while that is fresh. */
TEST_OF(few_lookups, struct fixture *f)
{
	use_name(f);
	wait_many(get_many(f, 200), 200, AVA_EDENIED);
	assert_in_range(dns.calls, 1, 4);
	get(f, REACHED); /* two hundred may take longer than an address is kept */
	dns.calls = 0;
	get(f, REACHED);
	assert_int_equal(dns.calls, 0);
}

TEST_OF(lookup_fails, struct fixture *f)
{
	use_name(f);
	dns_set(EAI_NONAME, "", false);
	wait_many(get_many(f, 20), 20, AVA_ECONNECT);
	get(f, AVA_ECONNECT, "cannot find the address of api.example.test: ");
	dns_set(0, "127.0.0.1", false); /* back again: the next call finds it */
	get(f, REACHED);
}

TEST_OF(lookup_hangs, struct fixture *f)
{
	struct got g;

	use_name(f);
	dns_set(0, "127.0.0.1", true);
	got_init(&g, f);
	g.call.timers.connect_ms = 50;
	got_run(&g);
	assert_int_equal(g.rv, AVA_ECONNECT);
	assert_non_null(strstr(g.text, "no connection to api.example.test within"));
	got_fini(&g);
	dns_set(0, "127.0.0.1", false);
	get(f, REACHED);
}

/* The address that is known serves from the second attempt on. */
TEST_OF(known_address, struct fixture *f)
{
	struct got g;

	for (int fails = 0; fails < 2; fails++) {
		char url[100];
		struct http_pool_options o = {
			.base_url = url, .ca_file = mock.ca, .http2 = true, .idle_ms = 1};

		use_name(f); /* and again, with what is kept soon forgotten */
		snprintf(url, sizeof(url), "https://api.example.test:%s",
			 strrchr(mock_url("tls"), ':') + 1);
		http_pool_free(f->pool);
		f->pool = http_pool_new(f->client, &o, NULL);
		get(f, REACHED);
		for (int i = 0; i < 20; i++)
			os_loop_step(f->loop, 5);
		dns_set(fails ? EAI_NONAME : 0, "127.0.0.1", !fails);
		got_init(&g, f);
		g.call.timers.connect_ms = fails ? 60000 : 100;
		got_run(&g);
		assert_int_equal(g.rv, AVA_ECONNECT);
		got_fini(&g);
		get(f, REACHED);
		dns_set(0, "127.0.0.1", false);
	}
}

/* Stopped, and the pool freed, while a lookup hangs: nothing waits for it. */
TEST_OF(leave_lookup, struct fixture *f)
{
	for (int late = 0; late < 2; late++) {
		struct got *g;

		use_name(f);
		dns_set(0, "127.0.0.1", true);
		g = get_many(f, 5);
		os_loop_step(f->loop, 1);
		for (size_t i = 0; i < 5; i++)
			http_call_stop(&g[i].call);
		if (late) /* it may be done before, or after */
			dns_set(0, "127.0.0.1", false);
		http_pool_free(f->pool);
		f->pool = NULL;
		dns_set(0, "127.0.0.1", false);
		for (size_t i = 0; i < 5; i++) {
			assert_int_equal(g[i].dones, 0);
			got_fini(&g[i]);
		}
		free(g);
	}
}

static int first(void **state)
{
	rig_resolve = resolve;
	return mock_start(state);
}

UNIT_GROUP(.before = rig_setup, .after = rig_teardown, .first = first, .last = mock_stop);
