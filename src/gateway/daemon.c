/* The daemon's process.
 *
 * Order of a start: the process itself (avad.c), configuration, data root
 * (0700), lock, runtime (which recovers), socket, ready. The socket comes last,
 * so that every client that can connect is served. SIGTERM, SIGINT and SIGHUP commit and
 * stop: the socket's name goes first, whoever connected before is still
 * answered (STOP_MS at the most), then the runtime closes, the lock goes last.
 *
 * What can fail: every step of a start, told to whoever started us; later the
 * data root may be moved away or replaced under us. Then nothing new is
 * begun, health says why, and the daemon leaves as soon as no run is started
 * and nobody is connected. */
#include "gateway/daemon.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/claude.h"
#include "ava/house.h"
#include "ava/prune.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/ready.h"
#include "base/sys.h"
#include "base/unix_sock.h"
#include "cluster/cluster.h"
#include "exec/cgroup.h"
#include "gateway/doors.h"
#include "gateway/routes.h"
#include "gateway/web.h"
#include "journal/index.h"
#include "net/http_server.h"
#include "os/service.h"

#define LOG_MAX_BYTES   (8 << 20)
#define TICK_MS         1000
#define INDEX_MS        30000 /* between two updates of the index of the logs */
#define STOP_MS         1000
#define CLUSTER_MS      2000 /* until a start goes on without an answer of the database */
#define STOP_S          20   /* seconds until a hanging thread is given up */
#define CONNECTIONS_MAX 1200

struct daemon {
	struct daemon_options options;
	struct house h;
	int log_fd;
	off_t log_bytes;
	ino_t socket_ino; /* inode of this daemon's ava.sock */
	bool held;        /* that socket belongs to the manager of services */
	struct http_server *http;
	struct routes routes;
	struct web *web;
	struct doors doors;
	struct os_signal *signals[3];
	struct os_timer *tick;
	int64_t idle_since_ms; /* monotonic; 0: the daemon is not idle */
	int64_t indexed_ms;    /* when the index of the logs was last brought up to date */
	bool stopping, stop_when_idle;
	bool lost; /* the daemon stops for a problem that does not go away */
};

/* ---- its log */

static void open_log(struct daemon *d)
{
	struct stat st;

	(void)mkdirat(d->h.root_fd, "logs", 0700);
	if (fstatat(d->h.root_fd, "logs/avad.log", &st, 0) == 0 && st.st_size > LOG_MAX_BYTES)
		(void)renameat(d->h.root_fd, "logs/avad.log", d->h.root_fd, "logs/avad.log.1");
	d->log_fd =
		openat(d->h.root_fd, "logs/avad.log",
		       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	d->log_bytes = d->log_fd >= 0 && fstat(d->log_fd, &st) == 0 ? st.st_size : 0;
}

static struct daemon *log_daemon; /* the daemon that log_aside writes for */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void daemon_log_line(const char *line, void *user)
{
	struct daemon *d = user;
	char text[1200], now[CLOCK_ISO_LEN + 1];
	size_t len;

	clock_iso(clock_wall_ms(), now);
	snprintf(text, sizeof(text), "%s [%d] %s", now, getpid(), line);
	len = MIN(strlen(text), sizeof(text) - 2);
	for (size_t i = 0; i < len; i++) /* paths may hold any character */
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			text[i] = '?';
	text[len] = '\n';
	pthread_mutex_lock(&log_lock);
	if (d->log_fd >= 0 && d->log_bytes > LOG_MAX_BYTES) {
		close(d->log_fd);
		open_log(d);
	}
	/* A write for each line, so that lines of two processes never mix. A line that a full disk
	 * does not take is lost; the next one is tried. */
	if (d->log_fd >= 0 && write(d->log_fd, text, len + 1) > 0)
		d->log_bytes += (off_t)(len + 1);
	pthread_mutex_unlock(&log_lock);
	if (d->options.verbose)
		fprintf(stderr, "%.*s\n", (int)len, text);
}

static void log_aside(const char *path, const char *to)
{
	char line[600];

	snprintf(line, sizeof(line),
		 "%.250s was no file or folder of ours: it is put aside as %.250s", path, to);
	daemon_log_line(line, log_daemon);
}

/* ---- its root */

static bool daemon_same_file(int dirfd, const char *name, int fd)
{
	struct stat named, ours;

	return fstatat(dirfd, name, &named, 0) == 0 && fstat(fd, &ours) == 0 &&
	       named.st_ino == ours.st_ino && named.st_dev == ours.st_dev;
}

static bool socket_is_ours(const struct daemon *d)
{
	struct stat st;

	return fstatat(d->h.root_fd, UNIX_SOCK_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == d->socket_ino;
}

/* Report a data root that was moved or replaced, since we keep writing to the folder that we opened
 * and another daemon could lock the new one; likewise a removed socket, by which commands no longer
 * reach us. */
static void daemon_check_root(struct daemon *d)
{
	char *problem = core_service(d->h.core)->problem, before = problem[0];
	size_t size = sizeof(core_service(d->h.core)->problem);

	problem[0] = '\0';
	if (!daemon_same_file(AT_FDCWD, d->h.root, d->h.root_fd))
		snprintf(problem, size,
			 "the data root %.300s was moved, removed or replaced: put it back, or let "
			 "this daemon (process %d) end",
			 d->h.root, getpid());
	else if (!socket_is_ours(d))
		snprintf(problem, size,
			 "%s was removed from %.300s, so that no new command reaches this daemon: "
			 "let it (process %d) end",
			 UNIX_SOCK_NAME, d->h.root, getpid());
	if (problem[0] && !before)
		daemon_log_line(problem, d);
	else if (before && !problem[0])
		daemon_log_line("the data root is in order again", d);
}

/* ---- stopping */

static int last_words = STDERR_FILENO;

/* A thread hangs in a file or folder that does not answer: exit. Acknowledged work is on disk, and
 * the next start takes it up as after a kill. */
static void daemon_leave(int signo)
{
	static const char line[] = "a file or folder does not answer: stopped without it\n";

	(void)!write(last_words, line, sizeof(line) - 1);
	_exit(1);
}

/* A daemon that a command started is no service: the variables are the command's. */
static void daemon_tell(const struct daemon *d, const char *state)
{
	if (d->options.ready_fd < 0)
		service_tell(state);
}

static void daemon_stop(struct daemon *d, const char *why)
{
	struct sigaction act = {.sa_handler = daemon_leave};
	char line[64];

	snprintf(line, sizeof(line), "stopping (%s)", why);
	daemon_log_line(line, d);
	d->stopping = true;
	daemon_tell(d, "STOPPING=1");
	os_loop_stop(d->h.loop);
	if (d->log_fd >= 0)
		last_words = d->log_fd;
	sigaction(SIGALRM, &act, NULL);
	alarm(STOP_S);
}

static void stop_signal(int signo, void *user)
{
	daemon_stop(user, signo == SIGTERM ? "SIGTERM" : signo == SIGINT ? "SIGINT" : "SIGHUP");
}

static bool nothing_started(struct daemon *d)
{
	return d->h.core->sup.slots_used == 0;
}

static void shutdown_asked(int now, void *user)
{
	struct daemon *d = user;

	d->stop_when_idle = true;
	if (now)
		daemon_stop(d, "asked to");
	else if (nothing_started(d))
		daemon_stop(d, "asked to, no run is started");
}

static void daemon_fenced(const char *why, void *user)
{
	struct daemon *d = user;

	d->options.again = true;
	daemon_stop(d, "another machine has its runs");
}

static void tick(void *user)
{
	struct daemon *d = user;
	int64_t now = os_now_ms(d->h.loop), limit = d->h.config.settings.idle_exit_s * 1000;
	bool alone = http_server_connections(d->http) + web_connections(d->web) == 0;
	bool idle = core_idle(d->h.core) && alone && !doors_serve(&d->doors) &&
		    !routes_scraped(&d->routes);

	daemon_check_root(d);
	daemon_tell(d, "WATCHDOG=1"); /* a loop that stands still tells nothing, and is ended */
	if (!idle && now - d->indexed_ms >= INDEX_MS) {
		d->indexed_ms = now;
		index_keep(d->h.root);
	}
	if (!idle)
		d->idle_since_ms = 0;
	else if (!d->idle_since_ms)
		d->idle_since_ms = now;
	d->lost = core_service(d->h.core)->problem[0] && alone && nothing_started(d);
	if (d->lost)
		daemon_stop(d, "its data root is not its own any more");
	else if (d->stop_when_idle && nothing_started(d))
		daemon_stop(d, "asked to, no run is started");
	else if (idle && limit > 0 && !d->options.service && now - d->idle_since_ms >= limit)
		daemon_stop(d, "idle");
	os_timer_set(d->tick, TICK_MS);
}

/* Answer every client that has connected: requests that wait for the disk, new requests, the ends
 * of streams. Streams that go on and idle connections are not waited for. */
static void finish_requests(struct daemon *d)
{
	int64_t end = clock_mono_ms() + STOP_MS;

	os_timer_stop(d->tick); /* the tick reads parts that end below */
	core_hold(d->h.core);
	if (!d->held)
		service_lead(d->h.root, UNIX_SOCK_NAME, false);
	if (!d->held && socket_is_ours(d)) /* no new connections from here on */
		(void)unlinkat(d->h.root_fd, UNIX_SOCK_NAME, 0);
	routes_stop(&d->routes);
	for (int i = 0; i < 4; i++) /* accept connections still in the queue */
		os_loop_step(d->h.loop, 0);
	http_server_quiesce(d->http);
	web_quiesce(d->web);
	while (http_server_busy(d->http) + web_busy(d->web) > d->routes.streams &&
	       clock_mono_ms() < end)
		os_loop_step(d->h.loop, 20);
}

/* ---- life */

/* The first command that starts a daemon is served by a member: new work is refused before. */
static void daemon_await_cluster(struct daemon *d)
{
	int64_t end = clock_mono_ms() + CLUSTER_MS;

	while (cluster_opening(core_service(d->h.core)->cluster) && !d->stopping &&
	       clock_mono_ms() < end)
		os_loop_step(d->h.loop, 20);
}

/* Log the default model and the reason for it. */
static void log_model(struct daemon *d, const char *forced)
{
	struct ava_error err;
	struct model model;
	const char *why;
	char line[700];

	if (model_resolve(forced, &model, &why, &err) == 0)
		snprintf(line, sizeof(line), "the model is %s: %s", model.id,
			 forced ? "AVA_MODEL says so" : why);
	else
		snprintf(line, sizeof(line), "no model can be used: %s", err.text);
	daemon_log_line(line, d);
}

/* The socket that is held for us, when it is the one at which commands ask; else one of our own.
 * Who connects to the former while we end starts the next daemon. */
static int daemon_listen(struct daemon *d, int *fd, struct ava_error *err)
{
	bool other;
	int held = service_socket_at(d->h.root_fd, UNIX_SOCK_NAME, &other);

	d->held = held >= 0;
	if (other)
		daemon_log_line("the socket that is held for this daemon is not that of its data "
				"root: it is not used",
				d);
	if (!d->held)
		return lock_listen(&d->h.lock, d->h.root_fd, fd, err);
	*fd = fcntl(held, F_DUPFD_CLOEXEC, held + 1);
	return *fd >= 0 ? 0 : err_sys(err, UNIX_SOCK_NAME);
}

static int start_http(struct daemon *d, struct ava_error *err)
{
	struct rlimit r;
	size_t most = getrlimit(RLIMIT_NOFILE, &r) == 0 ? (size_t)r.rlim_cur : 256;
	/* The journal needs descriptors too. */
	struct http_server_options o = {.connections_max =
						(unsigned)MIN(most / 2, CONNECTIONS_MAX)};
	struct stat st;
	int fd, rv;

	routes_init(&d->routes, d->h.core, shutdown_asked, d);
	rv = routes_open(&d->routes, &d->h.config, d->h.redact, daemon_log_line, d, err);
	if (rv == 0)
		rv = web_new(&d->web, &d->routes, d->h.root_fd, daemon_log_line, d, err);
	if (rv == 0)
		rv = daemon_listen(d, &fd, err);
	if (rv != 0)
		return rv;
	if (fstatat(d->h.root_fd, UNIX_SOCK_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
		d->socket_ino = st.st_ino;
	d->http = http_server_new(d->h.loop, fd, &o, routes_handle, &d->routes, err);
	return d->http ? 0 : err->code;
}

static int start_loop(struct daemon *d, struct ava_error *err)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	int rv = house_loop(&d->h, err);

	if (rv != 0)
		return rv;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		d->signals[i] = os_signal_new(d->h.loop, signals[i], stop_signal, d);
		if (!d->signals[i])
			return err_set(err, AVA_ENOMEM, "out of memory");
	}
	d->tick = os_timer_new(d->h.loop, tick, d);
	if (!d->tick)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return 0;
}

static int daemon_start(struct daemon *d, struct ava_error *err)
{
	const char *model = getenv("AVA_MODEL");
	struct core_options o = {.model = model && *model ? model : NULL,
				 .log = daemon_log_line,
				 .log_user = d,
				 .fenced = daemon_fenced,
				 .otel = d->h.config.otel};
	int rv = config_load(&d->h.config, err);

	if (rv == 0)
		rv = house_hold(&d->h, NULL, true, err);
	if (rv != 0)
		return rv;
	open_log(d);
	rv = start_loop(d, err);
	if (rv != 0)
		return rv;
	rv = house_open(&d->h, &o, err);
	if (rv == 0)
		core_service(d->h.core)->kept = d->options.ready_fd < 0;
	if (rv == 0)
		daemon_await_cluster(d);
	if (rv == 0)
		rv = claude_open(d->h.core, err);
	if (rv == 0)
		rv = start_http(d, err);
	if (rv == 0)
		rv = doors_open(&d->doors, d->h.core, &d->h.config, daemon_log_line, d, err);
	if (rv == 0) {
		log_model(d, o.model);
		d->indexed_ms = os_now_ms(d->h.loop);
		os_timer_set(d->tick, TICK_MS);
	}
	return rv;
}

static void daemon_close(struct daemon *d)
{
	doors_close(&d->doors);
	web_free(d->web);
	routes_hang_up(&d->routes);
	http_server_stop(d->http);
	house_stop(&d->h); /* signals are still ours */
	os_timer_free(d->tick);
	for (size_t i = 0; i < ARRAY_LEN(d->signals); i++)
		os_signal_free(d->signals[i]);
	if (d->log_fd >= 0)
		close(d->log_fd);
	house_close(&d->h);
	routes_close(&d->routes); /* no verb answers any more */
	cgroup_close();           /* no command runs any more */
}

int daemon_run(struct daemon_options *o, struct ava_error *err)
{
	struct daemon d = {.options = *o, .h = HOUSE_CLOSED, .log_fd = -1};
	char text[256];
	int rv;

	log_daemon = &d;
	sys_aside_told = log_aside;
	rv = daemon_start(&d, err);
	if (rv != 0) {
		ready_tell(d.options.ready_fd, rv, err->text);
		daemon_log_line(err->text, &d);
		daemon_close(&d);
		return rv;
	}
	cgroup_open(NULL, NULL, true);
	snprintf(text, sizeof(text), "ava %s serves", ava_version());
	daemon_log_line(text, &d);
	ready_tell(d.options.ready_fd, 0, "");
	daemon_tell(&d, "READY=1");
	if (!d.held)
		service_lead(d.h.root, UNIX_SOCK_NAME, true);
	if (!d.stopping)
		os_loop_run(d.h.loop);
	finish_requests(&d);
	rv = d.lost ? err_set(err, AVA_EIO, "%s", core_service(d.h.core)->problem) : 0;
	daemon_close(&d);
	o->again = d.options.again;
	return rv;
}

/* ---- recovery alone */

/* The root, locked, without serving it: recovered, and with `prune` pruned. */
static int offline(bool prune, int64_t older_s, bool dry, struct ava_error *err)
{
	struct daemon d = {.h = HOUSE_CLOSED, .log_fd = -1, .options = {.ready_fd = -1}};
	struct core_options o = {.root = d.h.root,
				 .settings = &d.h.config.settings,
				 .log = daemon_log_line,
				 .log_user = &d};
	struct buf report;
	int rv;

	/* A mistyped config.yaml must not keep recovery from acknowledged work. */
	if (config_load(&d.h.config, err) != 0)
		settings_defaults(&d.h.config.settings);
	rv = house_hold(&d.h, NULL, false, err);
	if (rv == 0) {
		open_log(&d);
		rv = start_loop(&d, err);
	}
	o.loop = d.h.loop;
	o.redact = d.h.redact;
	buf_init(&report, 64u << 20);
	if (older_s <= 0)
		older_s = d.h.config.settings.retention_days * 86400;
	if (rv == 0 && prune && older_s <= 0)
		rv = err_set(err, AVA_EINVAL, PRUNE_UNTOLD);
	else if (rv == 0)
		rv = prune ? core_prune(&o, clock_wall_ms() - older_s * 1000, dry, &report, err)
			   : core_recover(&o, &report, err);
	if (rv == 0 && buf_check(&report) == 0)
		puts(report.data);
	buf_fini(&report);
	daemon_close(&d);
	return rv;
}

int daemon_recover(struct ava_error *err)
{
	return offline(false, 0, false, err);
}

int daemon_prune(int64_t older_s, bool dry, struct ava_error *err)
{
	return offline(true, older_s, dry, err);
}

int daemon_cluster(const char *word, struct ava_error *err)
{
	struct house h = HOUSE_CLOSED;
	struct buf out;
	int rv = config_load(&h.config, err);

	buf_init(&out, 1u << 20);
	if (rv == 0)
		rv = house_loop(&h, err);
	if (rv == 0)
		rv = house_cluster(word, h.loop, &out, err);
	if (rv == 0 && fwrite(out.data, 1, out.len, stdout) != out.len)
		rv = err_sys(err, "stdout");
	buf_fini(&out);
	house_close(&h);
	return rv;
}
