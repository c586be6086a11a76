/* Order of a start: settings, data root (0700), lock, runtime (which recovers),
 * socket, ready. The socket comes last, so that whoever can connect is served;
 * the lock goes last when stopping. SIGTERM and SIGINT commit and stop. */
#include "gateway/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ready.h"
#include "base/settings.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "gateway/routes.h"
#include "journal/journal.h"
#include "net/http_server.h"
#include "os/lock.h"
#include "os/loop.h"

#define LOG_MAX_BYTES (8 << 20)
#define TICK_MS 1000

struct daemon {
	struct daemon_options options;
	struct settings settings;
	char root[4096];
	int root_fd, log_fd;
	struct lock lock;
	struct os_loop *loop;
	struct redact *redact;
	struct core *core;
	struct http_server *http;
	struct routes routes;
	struct os_signal *sigterm, *sigint;
	struct os_timer *tick;
	int64_t idle_since_ms; /* 0: not idle */
	bool stop_when_idle;
};

/* ---- its log */

static void log_line(const char *line, void *user)
{
	struct daemon *d = user;
	char text[1200], now[CLOCK_ISO_LEN + 1];
	int n;

	clock_iso(clock_wall_ms(), now);
	n = snprintf(text, sizeof(text), "%s [%d] %s\n", now, getpid(), line);
	n = n < (int)sizeof(text) ? n : (int)sizeof(text) - 1;
	/* One write a line, so that lines of two processes never mix. */
	if (d->log_fd >= 0 && write(d->log_fd, text, (size_t)n) < 0)
		d->log_fd = -1;
	if (d->options.verbose)
		fputs(text, stderr);
}

static void open_log(struct daemon *d)
{
	struct stat st;

	(void)mkdirat(d->root_fd, "logs", 0700);
	if (fstatat(d->root_fd, "logs/avad.log", &st, 0) == 0 && st.st_size > LOG_MAX_BYTES)
		(void)renameat(d->root_fd, "logs/avad.log", d->root_fd, "logs/avad.log.1");
	d->log_fd = openat(d->root_fd, "logs/avad.log",
			   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* ---- root and lock */

static int make_folders(char *path, struct ava_error *err)
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = 0;
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return err_sys(err, "the data root needs the folder %s", path);
		if (!slash)
			return 0;
		*slash = '/';
	}
}

static int open_root(struct daemon *d, struct ava_error *err)
{
	int rv = settings_load(&d->settings, err);

	if (rv == 0)
		rv = settings_data_root(d->root, sizeof(d->root), err);
	if (rv == 0)
		rv = make_folders(d->root, err);
	if (rv != 0)
		return rv;
	d->root_fd = open(d->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->root_fd < 0)
		return err_sys(err, "data root %s", d->root);
	if (faccessat(d->root_fd, ".", W_OK, 0) != 0)
		return err_set(err, AVA_EDENIED,
			       "the data root %s is not writable: set AVA_DATA_ROOT to a folder that is",
			       d->root);
	return lock_take(&d->lock, d->root_fd, err);
}

/* ---- stopping */

static void stop_signal(int signo, void *user)
{
	struct daemon *d = user;

	log_line(signo == SIGTERM ? "stopping (SIGTERM)" : "stopping (SIGINT)", d);
	os_loop_stop(d->loop);
}

static bool nothing_started(struct daemon *d)
{
	struct op_health h;

	ops_health(d->core, &h);
	return h.slots_used == 0;
}

static void shutdown_asked(int now, void *user)
{
	struct daemon *d = user;

	d->stop_when_idle = true;
	if (now) {
		log_line("stopping (asked to)", d);
		os_loop_stop(d->loop);
	}
}

static void tick(void *user)
{
	struct daemon *d = user;
	int64_t now = os_now_ms(d->loop), limit = d->settings.idle_exit_s * 1000;
	bool idle = core_idle(d->core) && http_server_connections(d->http) == 0;

	if (!idle)
		d->idle_since_ms = 0;
	else if (!d->idle_since_ms)
		d->idle_since_ms = now;
	if (d->stop_when_idle && nothing_started(d)) {
		log_line("stopping (asked to, no run is started)", d);
		os_loop_stop(d->loop);
	} else if (idle && limit > 0 && !d->options.service && now - d->idle_since_ms >= limit) {
		log_line("stopping (idle)", d);
		os_loop_stop(d->loop);
	}
	os_timer_set(d->tick, TICK_MS);
}

/* ---- life */

static int add_secrets(struct daemon *d)
{
	static const char *const names[] = { "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY",
					     "OPENAI_API_KEY" };

	d->redact = redact_new();
	if (!d->redact)
		return AVA_ENOMEM;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *key = getenv(names[i]);

		if (key && *key && redact_add(d->redact, key) != 0)
			return AVA_ENOMEM;
	}
	return 0;
}

static int start_http(struct daemon *d, struct ava_error *err)
{
	int fd, rv = lock_listen(&d->lock, d->root_fd, &fd, err);

	if (rv != 0)
		return rv;
	d->routes = (struct routes){ .core = d->core, .shutdown = shutdown_asked, .user = d };
	d->http = http_server_new(d->loop, fd, NULL, routes_handle, &d->routes, err);
	return d->http ? 0 : err->code;
}

static int start_loop(struct daemon *d, struct ava_error *err)
{
	d->loop = os_loop_new(err);
	if (!d->loop)
		return err->code;
	d->sigterm = os_signal_new(d->loop, SIGTERM, stop_signal, d);
	d->sigint = os_signal_new(d->loop, SIGINT, stop_signal, d);
	d->tick = os_timer_new(d->loop, tick, d);
	if (!d->sigterm || !d->sigint || !d->tick || add_secrets(d) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return 0;
}

static int start(struct daemon *d, struct ava_error *err)
{
	struct core_options o = { .root = d->root, .settings = &d->settings, .log = log_line,
				  .log_user = d };
	const char *model = getenv("AVA_MODEL");
	int rv = open_root(d, err);

	if (rv != 0)
		return rv;
	open_log(d);
	rv = start_loop(d, err);
	if (rv != 0)
		return rv;
	o.loop = d->loop;
	o.redact = d->redact;
	o.model = model && *model ? model : NULL;
	rv = core_open(&d->core, &o, err);
	if (rv == 0)
		rv = start_http(d, err);
	if (rv == 0)
		os_timer_set(d->tick, TICK_MS);
	return rv;
}

static void daemon_close(struct daemon *d)
{
	http_server_stop(d->http);
	if (d->core)
		core_close(d->core);
	if (d->http)
		(void)unlinkat(d->root_fd, "ava.sock", 0);
	os_timer_free(d->tick);
	os_signal_free(d->sigterm);
	os_signal_free(d->sigint);
	if (d->loop)
		os_loop_free(d->loop);
	redact_free(d->redact);
	if (d->log_fd >= 0)
		close(d->log_fd);
	lock_drop(&d->lock);
	if (d->root_fd >= 0)
		close(d->root_fd);
}

int daemon_run(const struct daemon_options *o, struct ava_error *err)
{
	struct daemon d = { .options = *o, .root_fd = -1, .log_fd = -1, .lock = LOCK_CLOSED };
	char text[256];
	int rv;

	signal(SIGPIPE, SIG_IGN);
	rv = start(&d, err);
	if (rv != 0) {
		ready_tell(d.options.ready_fd, rv, err->text);
		log_line(err->text, &d);
		daemon_close(&d);
		return rv;
	}
	snprintf(text, sizeof(text), "ava %s serves", ava_version());
	log_line(text, &d);
	ready_tell(d.options.ready_fd, 0, "");
	os_loop_run(d.loop);
	daemon_close(&d);
	return 0;
}

/* ---- recovery alone */

static void print_recovery(const struct journal_recovery *r)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 16u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_bool(&w, "clean", r->clean);
	jw_int(&w, "redoneBatches", (int64_t)r->redone_batches);
	jw_int(&w, "redoneBytes", (int64_t)r->redone_bytes);
	jw_int(&w, "tornBytes", (int64_t)r->torn_bytes);
	jw_int(&w, "abortedBatches", (int64_t)r->aborted_batches);
	jw_int(&w, "damagedBatches", (int64_t)r->damaged_batches);
	jw_int(&w, "lostBytes", (int64_t)r->lost_bytes);
	jw_raw(&w, "problems", r->problems ? r->problems : "[]",
	       r->problems ? strlen(r->problems) : 2);
	jw_end(&w);
	if (buf_check(&b) == 0)
		puts(b.data);
	buf_fini(&b);
}

int daemon_recover(struct ava_error *err)
{
	struct daemon d = { .root_fd = -1, .log_fd = -1, .lock = LOCK_CLOSED,
			    .options = { .ready_fd = -1 } };
	struct journal_recovery r = { 0 };
	struct journal_options o;
	struct journal *j;
	int rv = open_root(&d, err);

	if (rv == 0) {
		o = (struct journal_options){ .root = d.root, .pace_us = 0,
					      .segment_bytes = 16u << 20,
					      .checkpoint_bytes = 256u << 20 };
		rv = journal_open(&j, &o, &r, err);
	}
	if (rv == 0) {
		print_recovery(&r);
		journal_close(j);
	}
	daemon_close(&d);
	return rv;
}
