/* The channels of notify.exec and notify.desktop: one command for each notice. That of a person
 * gets the notice on its standard input, and is told which attempt it is; notify-send gets title
 * and words as arguments.
 *
 * What can fail: the command, in every way (it is called again later, then the notice is given
 * up). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/env.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "exec/child.h"

#define WORDS_MAX    32
#define OUTPUT_MAX   65536
#define OUTPUT_KEPT  300
#define RETRY_MAX_MS 600000
#define TITLE_CHARS  120
#define BODY_CHARS   300

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
	bool desktop;
	const char *argv[WORDS_MAX + 1];
	char *env[ARRAY_LEN(passed) + 1]; /* owned */
	struct exec_child *child;
};

/* ---- the outcome of a call */

void notify_failed(struct channel *ch, const char *name, int64_t after_ms, bool gone)
{
	struct core *c = ch->d->core;
	enum channel_end end = CHANNEL_LATER;
	struct notice_try *t;
	int64_t pause_ms;

	if (ch->item) {
		t = channel_try(ch);
		core_log(c, "%s, attempt %u for #%llu: %s", name, t->attempts,
			 (unsigned long long)ch->item->item.lsn, ch->reason);
		pause_ms =
			channel_pause_ms(c->settings.notify_retry_s, t->attempts, 4, RETRY_MAX_MS);
		t->due_ms = os_now_ms(c->loop) + MIN(MAX(pause_ms, after_ms), RETRY_MAX_MS);
		if (gone || t->attempts >= ch->attempts_max)
			end = CHANNEL_GIVEN_UP;
	}
	channel_done(ch, end);
}

static void command_failed(struct notify *n)
{
	notify_failed(&n->ch, n->desktop ? "notify.desktop" : "notify.exec", -1, false);
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
	command_failed(n);
}

/* ---- the call */

void notify_add_escaped(struct buf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '&')
			buf_adds(b, "&amp;");
		else if (s[i] == '<' || s[i] == '>')
			buf_adds(b, s[i] == '<' ? "&lt;" : "&gt;");
		else
			buf_addc(b, s[i]);
	}
}

/* An argument of notify-send. */
static void notify_add_words(struct buf *b, const char *s, unsigned chars)
{
	size_t n = utf8_prefix(s, strlen(s), chars);

	notify_add_escaped(b, s, n);
	buf_adds(b, s[n] ? "…" : "");
	buf_addc(b, '\0');
}

/* Title and words behind the arguments that are always the same; `b` holds them for the call. */
static int desktop_args(struct notify *n, struct buf *b)
{
	json_t *item = json_parse(n->ch.item->json, strlen(n->ch.item->json), NULL);
	size_t title = 0, words = 0;
	int rv = item ? 0 : AVA_ENOMEM;

	while (n->argv[words] && strcmp(n->argv[words], "--") != 0)
		words++;
	notify_add_words(b, json_str(item, "title"), TITLE_CHARS);
	title = b->len;
	notify_add_words(b, json_str(item, "text"), BODY_CHARS);
	json_decref(item);
	rv = rv == 0 ? buf_check(b) : rv;
	n->argv[words + 1] = rv == 0 ? b->data : NULL;
	n->argv[words + 2] = rv == 0 ? b->data + title : NULL;
	n->argv[words + 3] = NULL;
	return rv;
}

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
	if (n->desktop) {
		rv = desktop_args(n, &b);
	} else {
		buf_addf(&b, "{\"version\":1,\"channel\":\"notify\",\"attempt\":%u,%s\n",
			 channel_try(ch)->attempts, ch->item->json + 1);
		rv = buf_check(&b);
		o.input = b.data;
		o.input_len = b.len;
	}
	if (rv == 0)
		rv = exec_start(&n->child, n->ch.d->core->loop, &o, notify_ended, n, &err);
	else
		err_set(&err, rv, "out of memory");
	buf_fini(&b);
	if (rv != 0) {
		snprintf(n->ch.reason, sizeof(n->ch.reason), "%s", err.text);
		command_failed(n);
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

static int open_command(struct core *c, const char *command, const struct channel_kind *kind,
			struct ava_error *err)
{
	struct notify *n = calloc(1, sizeof(*n));

	if (!n || channel_init(&n->ch, c->delivery, kind) != 0 || make_argv(n, command) != 0 ||
	    notify_make_env(n) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	n->desktop = kind->channel == DELIVERY_DESKTOP;
	n->ch.attempts_max = (unsigned)c->settings.notify_attempts;
	return 0;
}

int notify_open(struct core *c, const char *command, struct ava_error *err)
{
	static const struct channel_kind kind = {DELIVERY_NOTIFY, notify_send, notify_stop,
						 notify_free};

	return command && *command ? open_command(c, command, &kind, err) : 0;
}

/* ---- the desktop */

const char *notify_desktop_why(char path[512])
{
	const char *at = env_get("PATH"), *run = env_get("XDG_RUNTIME_DIR");
	bool bus = env_get("DBUS_SESSION_BUS_ADDRESS") != NULL;

	snprintf(path, 512, "%s/bus", run ? run : "");
	if (!bus && (!run || access(path, F_OK) != 0))
		return "there is no session bus (DBUS_SESSION_BUS_ADDRESS, $XDG_RUNTIME_DIR/bus): "
		       "start the daemon in the session of the desktop";
	for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at; at += *at == ':') {
		size_t n = strcspn(at, ":");

		snprintf(path, 512, "%.*s/notify-send", (int)n, at);
		if (*at == '/' && access(path, X_OK) == 0)
			return NULL;
		at += n;
	}
	return "there is no notify-send: install libnotify-bin";
}

int notify_desktop_open(struct core *c, struct ava_error *err)
{
	static const struct channel_kind kind = {DELIVERY_DESKTOP, notify_send, notify_stop,
						 notify_free};
	char path[512], command[600];
	const char *why;
	int n;

	if (!c->settings.notify_desktop)
		return 0;
	why = notify_desktop_why(path);
	if (why) {
		core_log(c, "notify.desktop: %s", why);
		return 0;
	}
	n = snprintf(command, sizeof(command), "%s%c--app-name=ava%c--%c", path, 0, 0, 0);
	command[n] = '\0';
	return open_command(c, command, &kind, err);
}
