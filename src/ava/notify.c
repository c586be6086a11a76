/* The channel of notify.exec: one command for each notice, told which attempt it is.
 *
 * What can fail: the command, in every way (it is called again later, then the notice is given
 * up). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/env.h"
#include "base/error.h"
#include "codec/json.h"
#include "exec/child.h"

#define WORDS_MAX    32
#define OUTPUT_MAX   65536
#define OUTPUT_KEPT  300
#define RETRY_MAX_MS 600000

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
	struct channel ch;
	char *words; /* argv points into it */
	const char *argv[WORDS_MAX + 1];
	char *env[ARRAY_LEN(passed) + 1]; /* owned */
	struct exec_child *child;
};

/* ---- the outcome of a call */

static void notify_failed(struct notify *n)
{
	struct core *c = n->ch.d->core;
	enum channel_end end = CHANNEL_LATER;
	struct notice_try *t;

	if (n->ch.item) {
		t = channel_try(&n->ch);
		core_log(c, "notify.exec, attempt %u for #%llu: %s", t->attempts,
			 (unsigned long long)n->ch.item->item.lsn, n->ch.reason);
		t->due_ms = os_now_ms(c->loop) + channel_pause_ms(c->settings.notify_retry_s,
								  t->attempts, 4, RETRY_MAX_MS);
		if (t->attempts >= n->ch.attempts_max)
			end = CHANNEL_GIVEN_UP;
	}
	channel_done(&n->ch, end);
}

static void notify_ended(const struct exec_end *end, void *user)
{
	struct notify *n = user;

	n->child = NULL;
	n->ch.reason[0] = 0;
	switch (end->how) {
	case EXEC_EXITED:
		if (end->code == 0) {
			channel_done(&n->ch, CHANNEL_TAKEN);
			return;
		}
		snprintf(n->ch.reason, sizeof(n->ch.reason), "it ended with %d", end->code);
		break;
	case EXEC_SIGNALLED:
		snprintf(n->ch.reason, sizeof(n->ch.reason), "it was ended by signal %d",
			 end->code);
		break;
	case EXEC_TIMEOUT:
		snprintf(n->ch.reason, sizeof(n->ch.reason), "it took more than %lld s",
			 (long long)n->ch.d->core->settings.notify_timeout_s);
		break;
	case EXEC_STOPPED: /* cannot be: the command is killed */
	case EXEC_OUTPUT:
		snprintf(n->ch.reason, sizeof(n->ch.reason), "it wrote more than %d bytes",
			 OUTPUT_MAX);
		break;
	}
	channel_add_reason(&n->ch, end->output, end->output_len);
	notify_failed(n);
}

/* ---- the call */

static void notify_send(struct channel *ch)
{
	struct notify *n = CONTAINER_OF(ch, struct notify, ch);
	struct ava_error err = {0};
	struct exec_options o = {
		.argv = n->argv,
		.env = (const char *const *)n->env,
		.timeout_ms = n->ch.d->core->settings.notify_timeout_s * 1000,
		.output_max = OUTPUT_MAX,
		.keep = OUTPUT_KEPT,
	};
	struct buf b;
	int rv;

	buf_init(&b, 1u << 19);
	buf_addf(&b, "{\"version\":1,\"channel\":\"notify\",\"attempt\":%u,%s\n",
		 channel_try(ch)->attempts, ch->item->json + 1);
	rv = buf_check(&b);
	o.input = b.data;
	o.input_len = b.len;
	if (rv == 0)
		rv = exec_start(&n->child, n->ch.d->core->loop, &o, notify_ended, n, &err);
	else
		err_set(&err, rv, "out of memory");
	buf_fini(&b);
	if (rv != 0) {
		snprintf(n->ch.reason, sizeof(n->ch.reason), "%s", err.text);
		notify_failed(n);
	}
}

/* ---- life */

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

static void notify_stop(struct channel *ch)
{
	struct notify *n = CONTAINER_OF(ch, struct notify, ch);

	if (n->child)
		exec_kill(n->child);
	n->child = NULL;
}

static void notify_free(struct channel *ch)
{
	struct notify *n = CONTAINER_OF(ch, struct notify, ch);

	for (size_t i = 0; i < ARRAY_LEN(n->env); i++)
		free(n->env[i]);
	free(n->words);
	free(n);
}

int notify_open(struct core *c, const char *command, struct ava_error *err)
{
	static const struct channel_kind kind = {DELIVERY_NOTIFY, notify_send, notify_stop,
						 notify_free};
	struct notify *n;

	if (!command || !*command)
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n || channel_init(&n->ch, c->delivery, &kind) != 0 || make_argv(n, command) != 0 ||
	    notify_make_env(n) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	n->ch.attempts_max = (unsigned)c->settings.notify_attempts;
	return 0;
}
