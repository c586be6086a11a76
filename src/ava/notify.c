/* The channel of notify.exec: one command for each notice, one at a time.
 *
 *   pick ─► its attempt on disk ─► the command ─┬─ ended with 0 ─► settled on disk
 *    ▲                                          └─ failed ─► later, or given up
 *    └──────────────────────────────────────────────────────────────┘
 *
 * The attempt that is counted before says after a crash that it may have been called:
 * it is called again, and told that this is another attempt. What can fail: the
 * command, in every way (tried again, then given up); the disk (the same step
 * again later). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/env.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "exec/child.h"

#define WORDS_MAX     32
#define OUTPUT_MAX    65536
#define OUTPUT_KEPT   300
#define RETRY_MAX_MS  600000
#define DISK_RETRY_MS 5000

/* The whole environment of the command: no keys. */
static const char *const passed[] = {
	"HOME",
	"PATH",
	"USER",
	"LOGNAME",
	"LANG",
	"LC_ALL",
	"LC_CTYPE",
	"TZ",
	"DISPLAY",
	"WAYLAND_DISPLAY",
	"XAUTHORITY",
	"XDG_RUNTIME_DIR",
	"DBUS_SESSION_BUS_ADDRESS",
};

struct notify {
	struct delivery *d;
	char *words; /* the text that `argv` points into */
	const char *argv[WORDS_MAX + 1];
	char *env[ARRAY_LEN(passed) + 1]; /* owned */
	struct os_timer *timer;
	struct exec_child *child;
	bool stopped, busy;  /* busy: `item` is between pick and its end */
	bool end_waits;      /* write_end must run again: the disk refused it */
	struct notice *item; /* NULL: settled meanwhile: answered, or dropped */
	char reason[600];    /* the failure of the last call; "": it succeeded */
};

/* ---- the end of a notice */

static void end_written(int rv, void *user)
{
	struct notify *n = user;

	if (n->stopped)
		return;
	n->end_waits = rv != 0;
	if (rv != 0) { /* the timer repeats this step */
		os_timer_set(n->timer, DISK_RETRY_MS);
		return;
	}
	if (n->item)
		delivery_settle(n->d, n->item, DELIVERY_NOTIFY);
	n->busy = false;
	n->item = NULL;
	notify_pump(n->d);
}

/* Settles the notice, or, with a reason, gives it up. */
static void write_end(struct notify *n)
{
	struct draft *dr;
	int rv;

	if (!n->item) {
		end_written(0, n);
		return;
	}
	n->item->closing |= DELIVERY_NOTIFY;
	dr = delivery_draft(n->d);
	if (dr && n->reason[0])
		delivery_gave_up(n->d, dr, DELIVERY_NOTIFY, n->item, n->reason);
	rv = delivery_commit(dr, end_written, n);
	if (rv != 0)
		end_written(rv, n);
}

/* ---- the outcome of a call */

static int64_t notify_pause_ms(const struct notify *n, unsigned attempts)
{
	int64_t ms = n->d->core->settings.notify_retry_s * 1000;

	for (unsigned i = 1; i < attempts && ms < RETRY_MAX_MS; i++)
		ms *= 4;
	return MIN(ms, RETRY_MAX_MS);
}

static void notify_failed(struct notify *n)
{
	struct core *c = n->d->core;
	struct notice *it = n->item;

	if (!it) {
		write_end(n);
		return;
	}
	core_log(c, "notify.exec, attempt %u for #%llu: %s", it->attempts,
		 (unsigned long long)it->item.lsn, n->reason);
	if (it->attempts >= (unsigned)c->settings.notify_attempts) {
		write_end(n);
		return;
	}
	it->due_ms = os_now_ms(c->loop) + notify_pause_ms(n, it->attempts);
	n->busy = false;
	n->item = NULL;
	notify_pump(n->d);
}

/* Adds the first line of the output, fit for a terminal and without secrets. */
static void notify_add_output(struct notify *n, const struct exec_end *end)
{
	size_t len = strlen(n->reason), line = 0;
	struct buf clean, shown;
	const struct redact *redact = n->d->core->redact;

	while (line < end->output_len && end->output[line] != '\n' && end->output[line])
		line++;
	buf_init(&clean, 8192);
	buf_init(&shown, 8192);
	if (line > 0 &&
	    (redact ? redact_text(redact, &clean, end->output, line)
		    : buf_add(&clean, end->output, line)) >= 0 &&
	    utf8_terminal(&shown, clean.data ? clean.data : "", clean.len, false) == 0)
		snprintf(n->reason + len, sizeof(n->reason) - len, ": %.*s",
			 (int)utf8_prefix(shown.data ? shown.data : "", shown.len, 200),
			 shown.data ? shown.data : "");
	buf_fini(&clean);
	buf_fini(&shown);
}

static void notify_ended(const struct exec_end *end, void *user)
{
	struct notify *n = user;

	n->child = NULL;
	n->reason[0] = 0;
	switch (end->how) {
	case EXEC_EXITED:
		if (end->code == 0) {
			write_end(n);
			return;
		}
		snprintf(n->reason, sizeof(n->reason), "it ended with %d", end->code);
		break;
	case EXEC_SIGNALLED:
		snprintf(n->reason, sizeof(n->reason), "it was ended by signal %d", end->code);
		break;
	case EXEC_TIMEOUT:
		snprintf(n->reason, sizeof(n->reason), "it took more than %lld s",
			 (long long)n->d->core->settings.notify_timeout_s);
		break;
	case EXEC_STOPPED: /* cannot be: the command is killed */
	case EXEC_OUTPUT:
		snprintf(n->reason, sizeof(n->reason), "it wrote more than %d bytes", OUTPUT_MAX);
		break;
	}
	notify_add_output(n, end);
	notify_failed(n);
}

/* ---- the call */

static void notify_call(struct notify *n)
{
	struct notice *it = n->item;
	struct ava_error err = {0};
	struct exec_options o = {
		.argv = n->argv,
		.env = (const char *const *)n->env,
		.timeout_ms = n->d->core->settings.notify_timeout_s * 1000,
		.output_max = OUTPUT_MAX,
		.keep = OUTPUT_KEPT,
	};
	struct buf b;
	int rv;

	buf_init(&b, 1u << 19);
	buf_addf(&b, "{\"version\":1,\"channel\":\"notify\",\"attempt\":%u,%s\n", it->attempts,
		 it->json + 1);
	rv = buf_check(&b);
	o.input = b.data;
	o.input_len = b.len;
	if (rv == 0)
		rv = exec_start(&n->child, n->d->core->loop, &o, notify_ended, n, &err);
	else
		err_set(&err, rv, "out of memory");
	buf_fini(&b);
	if (rv != 0) {
		snprintf(n->reason, sizeof(n->reason), "%s", err.text);
		notify_failed(n);
	}
}

static void send_written(int rv, void *user)
{
	struct notify *n = user;

	if (n->stopped)
		return;
	if (rv == 0 && n->item) {
		notify_call(n);
		return;
	}
	if (n->item)
		n->item->attempts--;
	n->busy = false;
	n->item = NULL;
	if (rv == 0)
		notify_pump(n->d);
	else
		os_timer_set(n->timer, DISK_RETRY_MS);
}

static void notify_begin(struct notify *n, struct notice *it)
{
	int rv;

	n->busy = true;
	n->item = it;
	if (it->attempts >= (unsigned)n->d->core->settings.notify_attempts) {
		snprintf(n->reason, sizeof(n->reason), "the runtime stopped in its last attempt");
		write_end(n);
		return;
	}
	it->attempts++;
	rv = delivery_commit(delivery_draft(n->d), send_written, n);
	if (rv != 0)
		send_written(rv, n);
}

void notify_pump(struct delivery *d)
{
	struct notify *n = d->notify;
	int64_t now = os_now_ms(d->core->loop), next = INT64_MAX;

	if (n->busy || n->stopped)
		return;
	LIST_EACH (&d->notices, at, tmp) {
		struct notice *it = LIST_ENTRY(at, struct notice, node);

		if (!(it->open & DELIVERY_NOTIFY))
			continue;
		if (it->due_ms <= now) {
			notify_begin(n, it);
			return;
		}
		next = MIN(next, it->due_ms);
	}
	if (next != INT64_MAX)
		os_timer_set(n->timer, next - now);
}

void notify_forget(struct delivery *d, const struct notice *it)
{
	if (d->notify->item == it)
		d->notify->item = NULL;
}

/* ---- life */

/* Repeats an end that the disk refused, or calls for a notice whose time has come. */
static void notify_again(void *user)
{
	struct notify *n = user;

	if (n->end_waits)
		write_end(n);
	else
		notify_pump(n->d);
}

static int notify_make_env(struct notify *n)
{
	size_t k = 0;

	for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
		const char *value = env_get(passed[i]);

		if (!value && strcmp(passed[i], "PATH") == 0)
			value = "/usr/local/bin:/usr/bin:/bin";
		if (value && asprintf(&n->env[k], "%s=%s", passed[i], value) < 0) {
			n->env[k] = NULL;
			return AVA_ENOMEM;
		}
		k += value != NULL;
	}
	return 0;
}

static int make_argv(struct notify *n, const char *command)
{
	size_t len = 0, words = 0;

	while (command[len])
		len += strlen(command + len) + 1;
	n->words = malloc(len + 1);
	if (!n->words)
		return AVA_ENOMEM;
	memcpy(n->words, command, len + 1);
	for (char *at = n->words; *at && words < WORDS_MAX; at += strlen(at) + 1)
		n->argv[words++] = at;
	return 0;
}

int notify_open(struct delivery *d, const char *command, struct ava_error *err)
{
	struct notify *n = calloc(1, sizeof(*n));

	if (!n)
		return err_set(err, AVA_ENOMEM, "out of memory");
	d->notify = n;
	n->d = d;
	n->timer = os_timer_new(d->core->loop, notify_again, n);
	if (!n->timer || make_argv(n, command) != 0 || notify_make_env(n) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return 0;
}

void notify_stop(struct delivery *d)
{
	struct notify *n = d->notify;

	n->stopped = true;
	if (n->timer)
		os_timer_stop(n->timer);
	if (n->child)
		exec_kill(n->child);
	n->child = NULL;
}

void notify_close(struct delivery *d)
{
	struct notify *n = d->notify;

	os_timer_free(n->timer);
	for (size_t i = 0; i < ARRAY_LEN(n->env); i++)
		free(n->env[i]);
	free(n->words);
	free(n);
	d->notify = NULL;
}
