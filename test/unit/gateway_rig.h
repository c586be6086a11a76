/* A daemon without a process: real server, real runtime and real routes on a
 * temporary root, in a thread of their own; and peers of it, on the thread of
 * the test. What belongs to the loop is reached with rig_call. */
#ifndef UNIT_GATEWAY_RIG_H
#define UNIT_GATEWAY_RIG_H

#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/sys.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "client/client.h"
#include "codec/json.h"
#include "gateway/routes.h"
#include "net/http_server.h"
#include "os/loop.h"

struct rig {
	char dir[256], root[300], src[300];
	int dirfd;
	pthread_t thread;
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
	struct http_server *http;
	struct routes routes;
	int asked_to_stop; /* calls of routes.shutdown; `now` counts 100 */
	struct client *client;
};

static struct rig rig;

/* ---- on the loop */

struct rig_task {
	struct os_task task;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static inline void rig_task_run(struct os_task *t)
{
	struct rig_task *c = CONTAINER_OF(t, struct rig_task, task);

	c->fn(c->arg);
	sem_post(&c->done);
}

/* Call fn(arg) on the loop's thread and wait for it. */
static inline void rig_call(void (*fn)(void *arg), void *arg)
{
	struct rig_task c = {.fn = fn, .arg = arg};

	os_task_init(&c.task, rig_task_run);
	sem_init(&c.done, 0, 0);
	os_post(rig.loop, &c.task);
	while (sem_wait(&c.done) != 0)
		;
	sem_destroy(&c.done);
}

static inline void rig_shutdown(int now, void *user)
{
	rig.asked_to_stop += now ? 100 : 1;
}

static inline void *rig_thread(void *arg)
{
	os_loop_run(rig.loop);
	http_server_stop(rig.http);
	core_close(rig.core);
	os_loop_free(rig.loop);
	return NULL;
}

static inline void rig_start(void)
{
	struct core_options o = {.root = rig.root, .settings = &rig.settings, .model = "offline"};
	struct http_server_options h = {.heartbeat_ms = 50};
	struct ava_error err = {0};
	int fd;

	rig.loop = o.loop = os_loop_new(NULL);
	assert_non_null(rig.loop);
	if (core_open(&rig.core, &o, &err) != 0)
		fail_msg("core_open: %s", err.text);
	routes_init(&rig.routes, rig.core, rig_shutdown, NULL);
	assert_int_equal(unix_sock_listen(rig.dirfd, UNIX_SOCK_NAME, &fd, NULL), 0);
	rig.http = http_server_new(rig.loop, fd, &h, routes_handle, &rig.routes, NULL);
	assert_non_null(rig.http);
	assert_int_equal(pthread_create(&rig.thread, NULL, rig_thread, NULL), 0);
	assert_int_equal(client_open(rig.root, false, &rig.client, NULL), 0);
}

static inline void rig_stop_fn(void *arg)
{
	os_loop_stop(rig.loop);
}

static inline void rig_stop(void)
{
	client_close(rig.client);
	rig_call(rig_stop_fn, NULL);
	pthread_join(rig.thread, NULL);
}

static inline void rig_write(const char *name, const char *text)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", rig.src, name);
	unit_write(path, text, strlen(text));
}

static inline int rig_set_up(void **state)
{
	rig = (struct rig){0};
	snprintf(rig.dir, sizeof(rig.dir), "%s", unit_tmpdir());
	snprintf(rig.root, sizeof(rig.root), "%s/data", rig.dir);
	snprintf(rig.src, sizeof(rig.src), "%s/src", rig.dir);
	assert_int_equal(mkdir(rig.root, 0700), 0);
	assert_int_equal(mkdir(rig.src, 0700), 0);
	rig.dirfd = open(rig.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rig_write("main.c", "int main(void)\n{\n\treturn 0;\n}\n");
	/* Nothing, longer than any test takes. */
	rig_write("slow.jsonl", "{\"text\":\"late\",\"delay_ms\":3600000}\n");
	assert_int_equal(settings_load(&rig.settings, NULL), 0);
	rig.settings.disk_free_min_mb = 0;
	rig.settings.disk_ballast_mb = 0;
	rig_start();
	return 0;
}

static inline int rig_tear_down(void **state)
{
	test_clock_go();
	rig_stop();
	sys = &sys_real;
	close(rig.dirfd);
	unit_rmdir(rig.dir);
	return 0;
}

/* ---- a disk that takes its time, so that a commit is still on its way when
 * the test goes on. Between rig_stop and rig_start only. */

static atomic_bool rig_held;   /* it stands still */
static atomic_int rig_waiting; /* who waits for it then */
static atomic_int rig_let_go;  /* so many of them */

static inline int rig_slow_fdatasync(int fd)
{
	rig_waiting++;
	for (int n; atomic_load(&rig_held); poll(NULL, 0, 1)) {
		n = atomic_load(&rig_let_go);
		if (n > 0 && atomic_compare_exchange_strong(&rig_let_go, &n, n - 1))
			break;
	}
	rig_waiting--;
	poll(NULL, 0, 100);
	return fdatasync(fd);
}

static inline void rig_disk(bool slow)
{
	static struct sys_ops ops;

	ops = sys_real;
	ops.fdatasync = rig_slow_fdatasync;
	sys = slow ? &ops : &sys_real;
}

static inline void rig_restart(bool slow_disk)
{
	rig_stop();
	rig_disk(slow_disk);
	rig_start();
}

/* ---- asking */

/* The JSON of the answer (new reference); fails the test on another status. */
static inline json_t *rig_ask(const char *method, const char *path, const char *body, int status)
{
	struct client_reply r;
	struct ava_error err = {0};
	json_t *v;

	if (client_request(rig.client, method, path, body, &r, &err) != 0)
		fail_msg("%s %s: %s", method, path, err.text);
	if (r.status != status)
		fail_msg("%s %s %.200s: status %d, not %d: %s", method, path, body ? body : "",
			 r.status, status, r.body);
	v = json_parse(r.body, r.len, &err);
	if (!v)
		fail_msg("%s %s: %s: %s", method, path, err.text, r.body);
	return v;
}

/* `key` of the answer, into out[64]. */
static inline const char *rig_ask_str(const char *method, const char *path, const char *body,
				      int status, const char *key, char out[64])
{
	json_t *v = rig_ask(method, path, body, status);
	const char *s = json_get_str(v, key);

	if (!s)
		fail_msg("%s %s: no %s", method, path, key);
	snprintf(out, 64, "%s", s ? s : "");
	json_decref(v);
	return out;
}

/* A run of the script `name` (in rig.src), confirmed; its id. */
static inline const char *rig_run(const char *name, char id[64])
{
	char body[1000];

	snprintf(body, sizeof(body),
		 "{\"task\":\"play\",\"role\":\"code_reviewer\",\"cwd\":\"%s\","
		 "\"model\":\"offline:%s/"
		 "%s\",\"max_iterations\":1000,\"max_tokens\":100000000,\"confirmed\":true}",
		 rig.src, rig.src, name);
	return rig_ask_str("POST", "/api/v1/runs", body, 201, "subagent_id", id);
}

static inline const char *rig_path(const char *fmt, const char *id)
{
	static char path[256];

	snprintf(path, sizeof(path), fmt, id);
	return path;
}

/* ---- a peer that does as it likes */

static inline int raw_connect(void)
{
	int fd;

	assert_int_equal(unix_sock_connect(rig.dirfd, UNIX_SOCK_NAME, 5000, &fd, NULL), 0);
	return fd;
}

static inline void raw_send(int fd, const char *fmt, const char *a)
{
	char text[2000];
	int n = snprintf(text, sizeof(text), fmt, a);

	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* Asks and does not wait; the answer is the last of its connection. */
static inline int raw_post(const char *path, const char *body)
{
	char text[1500];
	int fd = raw_connect();

	snprintf(text, sizeof(text),
		 "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 path, strlen(body), body);
	raw_send(fd, "%s", text);
	return fd;
}

/* Everything up to the end of the connection. */
static inline void raw_read(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = recv(fd, out + len, size - 1 - len, 0)) > 0)
		len += (size_t)n;
	out[len] = '\0';
}

static inline void rig_busy_fn(void *arg)
{
	*(unsigned *)arg = http_server_busy(rig.http);
}

/* Wait until the server has `n` requests that are not answered; a slow disk that was held until
 * then (rig_held) goes on. */
static inline void rig_wait_busy(unsigned n)
{
	unsigned now = 0;

	for (int i = 0; i < 5000 && now < n; i++) {
		rig_call(rig_busy_fn, &now);
		if (now < n)
			poll(NULL, 0, 1);
	}
	atomic_store(&rig_held, false);
	assert_true(now >= n);
}

static inline void rig_connections_fn(void *arg)
{
	*(unsigned *)arg = http_server_connections(rig.http);
}

static inline void rig_streams_fn(void *arg)
{
	*(unsigned *)arg = rig.routes.streams;
}

static inline unsigned rig_streams(void)
{
	unsigned n;

	rig_call(rig_streams_fn, &n);
	return n;
}

/* Wait until the server has no more than `n` connections. */
static inline void rig_wait_connections(unsigned n)
{
	unsigned now = n + 1;

	for (int i = 0; i < 6000 && now > n; i++) {
		rig_call(rig_connections_fn, &now);
		if (now > n)
			poll(NULL, 0, 10);
	}
	assert_true(now <= n);
}

#endif
