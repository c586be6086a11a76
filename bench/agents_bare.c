/* The floor under `bench agents`: N agents x K turns on bare libuv and libcurl,
 * in one thread, with nothing around them: no log, no limits, no checks.
 *
 *     bench_agents_bare URL N TURNS [CA-FILE]
 *
 * Each agent holds its conversation as one growing text, sends it whole, scans
 * the stream for the id of the tool call, adds call and result, and asks again.
 * https: HTTP/2, as many connections as 100 streams each need. Prints a line of
 * JSON; the caller measures the process. Exit 1: an agent failed. */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "base/buf.h"

/* A system prompt and a tool of the size that a real role has. */
#define HEAD_BYTES 4096

struct agent {
	CURL *easy;
	struct buf body, reply;
	size_t messages_end; /* of body: where the next message goes */
	int turn, id;
};

static uv_loop_t *loop;
static uv_timer_t timeout;
static CURLM *multi;
static struct curl_slist *headers;
static char url[512];
static const char *ca;
static int turns, running, failed;

static void die(const char *what)
{
	fprintf(stderr, "bench_agents_bare: %s\n", what);
	exit(2);
}

static size_t on_bytes(char *data, size_t size, size_t n, void *user)
{
	struct agent *a = user;

	return buf_add(&a->reply, data, size * n) == 0 ? size * n : 0;
}

static void send_turn(struct agent *a)
{
	buf_adds(&a->body, "]}");
	buf_reset(&a->reply);
	curl_easy_setopt(a->easy, CURLOPT_POSTFIELDS, a->body.data);
	curl_easy_setopt(a->easy, CURLOPT_POSTFIELDSIZE, (long)a->body.len);
	curl_multi_add_handle(multi, a->easy);
}

static void first_message(struct agent *a)
{
	char filler[HEAD_BYTES + 1];

	memset(filler, 's', HEAD_BYTES);
	filler[HEAD_BYTES] = '\0';
	buf_addf(&a->body,
		 "{\"model\":\"claude-haiku-4-5\",\"max_tokens\":2048,\"stream\":true,\"system\":"
		 "\"%s\","
		 "\"tools\":[{\"name\":\"read_file\",\"description\":\"Read a "
		 "file.\",\"input_schema\":"
		 "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}}],"
		 "\"messages\":["
		 "{\"role\":\"user\",\"content\":\"Task %d.\"}",
		 filler, a->id);
	a->messages_end = a->body.len;
}

/* Call and result behind what is there. */
static bool add_turn(struct agent *a)
{
	static const char word[] = "\"type\":\"tool_use\",\"id\":\"";
	char *id = a->reply.len ? memmem(a->reply.data, a->reply.len, word, sizeof word - 1) : NULL;
	char *end = id ? strchr(id + sizeof word - 1, '"') : NULL;
	int len;

	if (end == NULL)
		return false;
	id += sizeof word - 1;
	len = (int)(end - id);
	a->body.len = a->messages_end;
	buf_addf(
		&a->body,
		",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Looking at "
		"the "
		"next "
		"part.\"},{\"type\":\"tool_use\",\"id\":\"%.*s\",\"name\":\"read_file\",\"input\":"
		"{\"path\":\"a.txt\"}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
		"\"tool_use_id\":\"%.*s\",\"content\":\"1\\tone\\n2\\ttwo\\n3\\tthree\"}]}",
		len, id, len, id);
	a->messages_end = a->body.len;
	return true;
}

static void turn_done(struct agent *a, CURLcode code)
{
	long status = 0;
	bool whole;

	curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
	whole = code == CURLE_OK && status == 200 && a->reply.len > 0 &&
		memmem(a->reply.data, a->reply.len, "event: message_stop", 19) != NULL;
	a->turn++;
	if (whole && a->turn < turns && add_turn(a)) {
		send_turn(a);
		return;
	}
	failed += !whole || a->turn < turns;
	running--;
	curl_easy_cleanup(a->easy);
	buf_fini(&a->body);
	buf_fini(&a->reply);
}

static void check_done(void)
{
	struct agent *a;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(multi, &left)) != NULL) {
		CURLcode code = m->data.result;

		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&a);
		curl_multi_remove_handle(multi, m->easy_handle);
		turn_done(a, code);
	}
	if (running == 0)
		uv_stop(loop);
}

static void on_ready(uv_poll_t *p, int status, int events)
{
	int flags = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
		    (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0) |
		    (status < 0 ? CURL_CSELECT_ERR : 0);
	int left;

	curl_multi_socket_action(multi, (curl_socket_t)(intptr_t)p->data, flags, &left);
	check_done();
}

static void on_closed(uv_handle_t *h)
{
	free(h);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *poll)
{
	uv_poll_t *p = poll;

	(void)easy;
	(void)user;
	if (what == CURL_POLL_REMOVE) {
		if (p != NULL) {
			uv_poll_stop(p);
			uv_close((uv_handle_t *)p, on_closed);
		}
		curl_multi_assign(multi, fd, NULL);
		return 0;
	}
	if (p == NULL) {
		p = calloc(1, sizeof *p);
		if (p == NULL || uv_poll_init_socket(loop, p, fd) != 0)
			die("poll");
		p->data = (void *)(intptr_t)fd;
		curl_multi_assign(multi, fd, p);
	}
	uv_poll_start(p,
		      (what & CURL_POLL_IN ? UV_READABLE : 0) |
			      (what & CURL_POLL_OUT ? UV_WRITABLE : 0),
		      on_ready);
	return 0;
}

static void on_timeout(uv_timer_t *t)
{
	int left;

	(void)t;
	curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &left);
	check_done();
}

static int on_timer(CURLM *m, long ms, void *user)
{
	(void)m;
	(void)user;
	if (ms < 0)
		uv_timer_stop(&timeout);
	else
		uv_timer_start(&timeout, on_timeout, (uint64_t)ms, 0);
	return 0;
}

static void agent_start(struct agent *a, int id)
{
	a->id = id;
	buf_init(&a->body, 1u << 20);
	buf_init(&a->reply, 1u << 20);
	a->easy = curl_easy_init();
	if (a->easy == NULL)
		die("easy handle");
	curl_easy_setopt(a->easy, CURLOPT_URL, url);
	curl_easy_setopt(a->easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(a->easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(a->easy, CURLOPT_WRITEDATA, a);
	curl_easy_setopt(a->easy, CURLOPT_PRIVATE, a);
	curl_easy_setopt(a->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(a->easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(a->easy, CURLOPT_BUFFERSIZE, 4096L);
	if (ca != NULL) {
		curl_easy_setopt(a->easy, CURLOPT_CAINFO, ca);
		curl_easy_setopt(a->easy, CURLOPT_CAPATH, NULL);
		curl_easy_setopt(a->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
		curl_easy_setopt(a->easy, CURLOPT_PIPEWAIT, 1L);
	}
	first_message(a);
	send_turn(a);
}

int main(int argc, char **argv)
{
	struct rlimit files;
	struct agent *agents;
	int n;

	if (argc < 4)
		die("usage: bench_agents_bare URL N TURNS [CA-FILE]");
	snprintf(url, sizeof url, "%s/v1/messages", argv[1]);
	n = atoi(argv[2]);
	turns = atoi(argv[3]);
	ca = argc > 4 ? argv[4] : NULL;
	agents = calloc((size_t)n, sizeof *agents);
	if (n < 1 || turns < 1 || agents == NULL)
		die("numbers");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	loop = uv_default_loop();
	uv_timer_init(loop, &timeout);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	multi = curl_multi_init();
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)n);
	if (ca != NULL)
		curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)(n + 99) / 100);
	headers = curl_slist_append(NULL, "content-type: application/json");
	headers = curl_slist_append(headers, "x-api-key: bench");
	headers = curl_slist_append(headers, "anthropic-version: 2023-06-01");
	headers = curl_slist_append(headers, "expect:");
	running = n;
	for (int i = 0; i < n; i++)
		agent_start(&agents[i], i);
	uv_run(loop, UV_RUN_DEFAULT);
	printf("{\"failed\":%d}\n", failed + running);
	curl_multi_cleanup(multi);
	curl_slist_free_all(headers);
	curl_global_cleanup();
	free(agents);
	return failed + running > 0;
}
