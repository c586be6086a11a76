/* The daemon, avad and the data root; api.h. What the daemon answers as an error becomes
 * an error object with its code and sentence; an answer that is not the JSON
 * it should be is AVA_EPROTO. */
#include "cli/api.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/keys.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "cli/cli.h"
#include "client/start.h"
#include "codec/json.h"
#include "event/item.h"
#include "journal/read.h"

#define PREFIX     "/api/v1"
#define INSIST_MAX 5
#define TEXTS_MAX  ((size_t)16 << 20)
#define PATHS_MAX  ((size_t)1 << 20)
#define OPEN_MAX   9     /* tries to open a daemon, within ten seconds */
#define SLOW_MS    2000  /* wait after which a person is told what it is for */
#define GIVE_UP_MS 60000 /* time after which a daemon counts as gone for good */
#define PAUSE_MS   100   /* pause before a daemon that went away is asked again */
#define UNWELL_MS  4000  /* ms that the answer of a daemon that cannot write may still take */

extern char **environ;

static struct client *connection;     /* NULL: the next request makes one, */
static enum api_open how = API_START; /* and as this says */

void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

int api_compare_versions(const char *a, const char *b)
{
	for (int i = 0; i < 3; i++) {
		char *enda, *endb;
		long x = strtol(a, &enda, 10), y = strtol(b, &endb, 10);

		if (x != y)
			return x < y ? -1 : 1;
		a = *enda == '.' ? enda + 1 : enda;
		b = *endb == '.' ? endb + 1 : endb;
	}
	return 0;
}

static int api_send(struct client *c, const char *path, const char *body, json_t **out, int *status,
		    struct ava_error *err)
{
	struct client_reply r;
	struct buf full;
	int rv;

	*out = NULL;
	buf_init(&full, PATHS_MAX);
	rv = buf_addf(&full, PREFIX "%s", path);
	if (rv == 0)
		rv = client_call(c, body != NULL ? "POST" : "GET", full.data, body, &r, err);
	else
		err_set(err, rv, "the request is too long");
	buf_fini(&full);
	if (rv != 0)
		return rv;
	if (status != NULL)
		*status = r.status;
	*out = json_parse(r.body, r.len, err);
	return *out != NULL ? 0 : err_wrap(err, AVA_EPROTO, "the daemon's answer");
}

/* The daemon has taken a request and does not answer it. It answers others
 * while it waits for its disk. */
static int64_t slow(void *user)
{
	char root[ROOT_PATH_MAX];
	struct client *c = NULL;
	json_t *health = NULL;
	int64_t more = -1;
	int rv = settings_data_root(root, sizeof(root), NULL);

	if (rv == 0)
		rv = client_open(root, false, &c, NULL);
	if (rv == 0) {
		client_set_quiet(c, SLOW_MS);
		rv = api_send(c, "/health", NULL, &health, NULL, NULL);
	}
	if (rv == 0 && json_str(health, "problem")[0] != '\0') {
		cli_note("waiting for the daemon, which has a problem: %s",
			 json_str(health, "problem"));
		more = UNWELL_MS;
	} else {
		cli_note("waiting for the daemon, which %s",
			 rv == 0 ? "is slow to answer" : "answers nothing");
	}
	json_decref(health);
	client_close(c);
	return more;
}

/* A POST without an answer may have been carried out: AVA_EUNKNOWN. */
static int unanswered(const char *body, int rv, struct ava_error *err)
{
	if (rv != AVA_ETIMEOUT || body == NULL)
		return rv;
	return err_set(err, AVA_EUNKNOWN,
		       "the daemon has not acknowledged this: it may or may not be done, once the "
		       "daemon is well \"ava ps -a\" and \"ava proposals -a\" show it");
}

static int api_ready(struct ava_error *err)
{
	return connection != NULL ? 0 : api_open(how, err);
}

int api_call(const char *path, const char *body, json_t **out, int *status, struct ava_error *err)
{
	int rv = api_ready(err);

	*out = NULL;
	return rv == 0 ? unanswered(body, api_send(connection, path, body, out, status, err), err)
		       : rv;
}

void api_body(struct jw *w, struct buf *body, size_t max)
{
	buf_init(body, max);
	jw_init(w, body);
	jw_object(w, NULL);
}

/* The path of a request; *owned* (buf_fini), also when it is too long. */
static int api_path(struct buf *path, const char *fmt, va_list ap, struct ava_error *err)
{
	int rv;

	buf_init(path, PATHS_MAX);
	rv = buf_vaddf(path, fmt, ap);
	return rv == 0 ? 0 : err_set(err, rv, "the request is too long");
}

/* The first key of ours that the daemon has otherwise, and goes on with; NULL: none. */
static const char *other_key(const json_t *health)
{
	const json_t *marks = json_object_get(health, "keys");
	const char *salt = json_get_str(marks, "salt"), *found = NULL;
	char mark[KEYS_MARK_LEN + 1];
	struct ava_error err;

	if (salt == NULL)
		return NULL; /* an older daemon sends no salt */
	if (keys_load(&err) != 0) {
		cli_note("%s", err.text);
		return NULL;
	}
	for (size_t i = 0; found == NULL && keys_known[i] != NULL; i++) {
		const char *theirs = json_get_str(marks, keys_known[i]);

		if (theirs != NULL && keys_mark(salt, keys_known[i], mark) && mark[0] != '\0' &&
		    strcmp(mark, theirs) != 0)
			found = keys_known[i];
	}
	keys_wipe();
	return found;
}

static void name_one(struct buf *names, const char *variable)
{
	buf_addf(names, "%s%s", names->len > 0 ? ", " : "", variable);
}

/* Note settings of the daemon that differ from ours. */
static void check_settings(const json_t *health)
{
	const json_t *theirs = json_object_get(health, "settings");
	const char *model = getenv("AVA_MODEL");
	struct settings own;
	struct ava_error err;
	static bool told;
	struct buf names;
	char variable[64];

	if (theirs == NULL || told)
		return; /* nothing to compare with an older daemon; told once */
	told = true;
	if (settings_load(&own, &err) != 0) {
		cli_note("%s; the daemon at work does not use it", err.text);
		return;
	}
	buf_init(&names, 1u << 16);
	for (const struct settings_key *k = settings_keys; k->name != NULL; k++) {
		settings_variable(k, variable);
		if (getenv(variable) != NULL &&
		    settings_get(&own, k) != json_get_int(theirs, k->name, k->def))
			name_one(&names, variable);
	}
	if (getenv("AVA_CONFIRM") != NULL &&
	    own.confirm_over_cents != json_get_int(theirs, "confirm", SETTINGS_CONFIRM_ALWAYS))
		name_one(&names, "AVA_CONFIRM");
	if (model != NULL && model[0] != '\0' && strcmp(model, json_str(theirs, "model")) != 0)
		name_one(&names, "AVA_MODEL");
	if (names.len > 0)
		cli_note("the daemon does not use your %s: it keeps what it was started with; to "
			 "use yours, `ava restart`",
			 names.data);
	buf_fini(&names);
}

/* AVA_ECONNECT: the daemon is older or (`take`) has other keys, has nothing to do and leaves; the
 * next one is started by us. */
static int api_check_daemon(struct client *c, bool note, bool *take, struct ava_error *err)
{
	json_t *health, *answer = NULL;
	const char *version, *key = NULL;
	bool busy, old;
	int rv = api_send(c, "/health", NULL, &health, NULL, err);

	if (rv != 0)
		return rv;
	version = json_get_str(health, "version");
	busy = json_get_bool(health, "busy",
			     json_get_int(json_object_get(health, "runs"), "running", 0) > 0);
	old = version != NULL && api_compare_versions(version, ava_version()) < 0;
	if (note && json_str(health, "problem")[0] != '\0')
		cli_note("the daemon has a problem: %s", json_str(health, "problem"));
	if (old && busy)
		cli_note("the daemon is version %s, older than this ava (%s): it is replaced at "
			 "the first command after its runs have ended",
			 version, ava_version());
	if (!old || busy)
		key = other_key(health);
	*take = *take && note && key != NULL && !busy && !json_get_bool(health, "service", false);
	if (key != NULL && !*take)
		cli_note("the daemon has %s %s: it keeps what it was started with%s; `ava restart` "
			 "starts one with yours",
			 json_str(json_object_get(health, "keys"), key)[0] != '\0' ? "another"
										   : "no",
			 key, busy ? ", and is at work" : "");
	if ((!old || busy) && !*take)
		check_settings(health);
	json_decref(health);
	if ((!old || busy) && !*take)
		return 0;
	rv = api_send(c, "/shutdown", "{\"when\":\"idle\"}", &answer, NULL, err);
	json_decref(answer);
	return rv == 0 ? err_set(err, AVA_ECONNECT, "an older daemon does not leave") : rv;
}

static void tell_start(void)
{
	cli_note("waiting for the daemon to start");
}

int api_connect(enum api_open as, struct client **c, struct ava_error *err)
{
	bool take;
	static bool taken; /* once: another program may start it with its own keys again */
	char root[ROOT_PATH_MAX];
	int rv = settings_data_root(root, sizeof(root), err);

	*c = NULL;
	client_tell_start(tell_start);
	for (int i = 0; rv == 0; i++) {
		rv = client_open(root, as != API_LOOK, c, err);
		if (rv != 0 || as == API_SILENT)
			return rv;
		client_set_slow(*c, SLOW_MS, slow, NULL);
		take = !taken;
		rv = as != API_LOOK ? api_check_daemon(*c, as == API_START, &take, err) : 0;
		taken |= as != API_LOOK && take;
		if (rv == 0)
			return 0;
		client_close(*c);
		*c = NULL;
		/* A daemon that was killed, or has just left, still listens for a moment and hangs
		 * up: ask its successor. */
		if (rv == AVA_ECONNECT && i + 1 < OPEN_MAX) {
			pause_ms(20L << i);
			rv = 0;
		}
	}
	return rv;
}

int api_open(enum api_open as, struct ava_error *err)
{
	api_close();
	how = as == API_LOOK ? as : API_BEGIN; /* notes come once */
	return api_connect(as, &connection, err);
}

void api_close(void)
{
	client_close(connection);
	connection = NULL;
}

bool api_is_open(void)
{
	return connection != NULL;
}

void api_deadline(int64_t at_ms)
{
	if (connection != NULL)
		client_set_deadline(connection, at_ms);
}

static int api_insist(const char *path, const char *body, json_t **out, struct ava_error *err)
{
	int rv = AVA_ECONNECT;

	*out = NULL;
	for (int i = 0; i < INSIST_MAX; i++) {
		if (i > 0)
			pause_ms(100L << i);
		rv = api_ready(err);
		if (rv != 0 && (i == 0 || rv == AVA_ETIMEOUT || rv == AVA_ECANCELED))
			break; /* a second wait would last as long */
		if (rv != 0)
			continue;
		rv = api_send(connection, path, body, out, NULL, err);
		if (rv != AVA_EUNKNOWN && rv != AVA_ECONNECT && rv != AVA_EPROTO)
			return unanswered(body, rv, err);
		api_close();
	}
	return rv;
}

void api_tell_lacks(const char *model, bool asked)
{
	struct ava_error err;
	json_t *health = NULL;
	const char *lacks;

	if (asked || strcmp(model, "offline") != 0 ||
	    api_request(NULL, &health, &err, "/health") != 0)
		return;
	lacks = json_str(health, "model_lacks");
	if (lacks[0] != '\0')
		fprintf(stderr, "The offline model is used: %s.\n", lacks);
	json_decref(health);
}

int api_ask(json_t **out, const char *body, const char *path_fmt, ...)
{
	struct ava_error err;
	struct buf path;
	va_list ap;
	int rv;

	*out = NULL;
	va_start(ap, path_fmt);
	rv = api_path(&path, path_fmt, ap, &err);
	va_end(ap);
	if (rv == 0)
		rv = api_call(path.data, body, out, NULL, &err);
	buf_fini(&path);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

int api_request(const char *body, json_t **out, struct ava_error *err, const char *path_fmt, ...)
{
	struct buf path;
	va_list ap;
	int rv;

	va_start(ap, path_fmt);
	rv = api_path(&path, path_fmt, ap, err);
	va_end(ap);
	if (rv == 0)
		rv = api_insist(path.data, body, out, err);
	buf_fini(&path);
	return rv;
}

int api_post(json_t **out, struct ava_error *err, const char *path, ...)
{
	json_t *answer = NULL;
	const char *name;
	struct buf body;
	struct jw w;
	va_list ap;
	int rv;

	api_body(&w, &body, TEXTS_MAX);
	va_start(ap, path);
	while ((name = va_arg(ap, const char *)) != NULL)
		jw_str(&w, name, va_arg(ap, const char *));
	va_end(ap);
	jw_end(&w);
	rv = buf_check(&body) == 0 ? 0 : err_set(err, buf_check(&body), "the text is too long");
	if (rv == 0)
		rv = api_insist(path, body.data, &answer, err);
	buf_fini(&body);
	if (rv == 0 && out != NULL)
		*out = answer;
	else
		json_decref(answer);
	return rv;
}

int api_steer(const char *run, const char *call, const char *text, json_t **out,
	      struct ava_error *err)
{
	struct session_id request = id_session(); /* a repeated request has no second effect */
	char path[64];

	snprintf(path, sizeof(path), "/runs/%s/steer", run);
	return api_post(out, err, path, "text", text, "request_id", request.text,
			call != NULL ? "call_id" : NULL, call, NULL);
}

int api_result(const char *run, int wait_s, json_t **result, struct ava_error *err)
{
	char path[96];
	int status, rv = api_ready(err);

	*result = NULL;
	if (rv != 0)
		return rv;
	snprintf(path, sizeof(path), "/runs/%s/result?wait=%d", run, wait_s);
	client_set_slow(connection, SLOW_MS + (int64_t)wait_s * 1000, slow, NULL);
	rv = api_call(path, NULL, result, &status, err);
	client_set_slow(connection, SLOW_MS, slow, NULL);
	if (rv == 0 && status == 202) { /* the run goes on, so the answer is its status */
		json_decref(*result);
		*result = NULL;
	}
	return rv;
}

/* ---- streams of events */

struct following {
	struct follow *f;
	struct follower stream;
	char path[96];
	int stop; /* value of a function of `f` that ended the following */
};

static int following_connect(void *user, struct client **c, struct ava_error *err)
{
	struct following *g = user;
	int rv = api_connect(API_SILENT, c, err);

	if (rv != 0)
		return rv;
	client_set_slow(*c, SLOW_MS, slow, NULL);
	if (g->f->interrupt != NULL)
		client_set_interrupt(*c, g->f->interrupt);
	return 0;
}

static int following_event(const struct sse_event *e, void *user)
{
	struct following *g = user;
	json_t *item;
	enum item_kind kind;
	int rv;

	if (g->f->on_event != NULL) {
		rv = g->f->on_event(e, g->f->user);
		g->stop = MAX(rv, 0);
		return rv;
	}
	item = strcmp(e->event, "item") == 0 ? json_parse(e->data, e->len, NULL) : NULL;
	kind = item_kind_of(json_str(item, "kind"));
	if (kind == ITEM_result || kind == ITEM_failed)
		g->f->tick_ms = clock_mono_ms();
	json_decref(item);
	return 0;
}

/* Take what came, call what is due, then wait. 0, or a code. */
static int following_step(struct following *g, struct ava_error *err)
{
	struct follow *f = g->f;
	bool join = g->stream.c == NULL;
	int rv = follow_look(&g->stream, err);
	int64_t until = f->until_ms;

	if (rv < 0 || g->stop != 0 || g->stream.ended)
		return MIN(rv, 0);
	if (f->look != NULL && (join || (f->tick_ms > 0 && clock_mono_ms() >= f->tick_ms))) {
		rv = f->look(f, f->user, err);
		g->stop = MAX(rv, 0);
		return MIN(rv, 0);
	}
	if (f->tick_ms > 0 && (until <= 0 || f->tick_ms < until))
		until = f->tick_ms;
	return rv > 0 ? 0 : MIN(follow_wait(&g->stream, until > 0 ? until : -1, err), 0);
}

/* The daemon went away, or does not answer: its successor may. */
static bool api_may_come_back(int code)
{
	return code == AVA_ECONNECT || code == AVA_EUNKNOWN || code == AVA_EPROTO ||
	       code == AVA_ETIMEOUT;
}

int api_follow(struct follow *f, struct ava_error *err)
{
	struct following g = {.f = f};
	int64_t give_up = clock_mono_ms() + GIVE_UP_MS;
	int rv;

	snprintf(g.path, sizeof(g.path), PREFIX "%s%.64s/events%s", f->run != NULL ? "/runs/" : "",
		 f->run != NULL ? f->run : "", f->items ? "?items=only" : "");
	g.stream = (struct follower){.path = g.path,
				     .connect = following_connect,
				     .on_event = following_event,
				     .user = &g};
	do {
		rv = following_step(&g, err);
		if (rv == AVA_ECANCELED && f->on_interrupt != NULL) {
			*f->interrupt = 0;
			rv = f->on_interrupt(f->user, err);
		}
		if (rv == 0) {
			give_up = clock_mono_ms() + GIVE_UP_MS;
		} else if (api_may_come_back(rv) && clock_mono_ms() < give_up) {
			follow_close(&g.stream);
			pause_ms(PAUSE_MS);
			rv = 0;
		}
	} while (rv == 0 && g.stop == 0 && !g.stream.ended &&
		 (f->until_ms <= 0 || clock_mono_ms() < f->until_ms));
	follow_close(&g.stream);
	return rv == 0 ? g.stop : rv;
}

/* ---- avad for an answer */

#define HELPER_WORDS  8
#define HELPER_MAX    ((size_t)64 << 20)
#define HELPER_IN_USE 3 /* exit code: another process holds the root */

static int helper_spawn(char **argv, const int fds[2], pid_t *pid)
{
	posix_spawn_file_actions_t files;
	int rv = posix_spawn_file_actions_init(&files);

	if (rv != 0)
		return rv;
	rv = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	for (int i = 0; rv == 0 && i < 2; i++)
		rv = posix_spawn_file_actions_adddup2(&files, fds[i], i + 1);
	if (rv == 0)
		rv = posix_spawn(pid, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return rv;
}

static void helper_read(int fd, struct buf *b)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *to = size > 0 ? buf_reserve(b, (size_t)size) : NULL;

	if (to != NULL && sys_read_all(fd, to, (size_t)size, 0) == 0)
		b->len = (size_t)size;
	if (b->len > 0)
		b->data[b->len] = '\0';
}

/* Run avad to its end; what it says is kept in memory meanwhile. 0: its exit code is 0. AVA_EBUSY:
 * another has the root. Else AVA_EIO with avad's words. */
static int helper_run(const char *avad, const char *const *words, struct buf *out,
		      struct ava_error *err)
{
	int fds[] = {memfd_create("answer", MFD_CLOEXEC), memfd_create("complaint", MFD_CLOEXEC)};
	char *argv[HELPER_WORDS + 2] = {(char *)avad};
	int status = -1, rv = fds[0] < 0 || fds[1] < 0 ? err_sys(err, "memory for avad") : 0;
	struct buf complaint; /* a sentence behind "avad: ", one line */
	const char *said;
	pid_t pid = -1;

	buf_init(&complaint, 1u << 20);
	for (size_t i = 0; i < HELPER_WORDS && words[i]; i++)
		argv[i + 1] = (char *)words[i];
	if (rv == 0 && (errno = helper_spawn(argv, fds, &pid)) != 0)
		rv = err_sys(err, "%s", avad);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (rv == 0) {
		helper_read(fds[0], out);
		helper_read(fds[1], &complaint);
	}
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (rv == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
		said = complaint.len > 0 ? complaint.data : "";
		said += strncmp(said, "avad: ", 6) == 0 ? 6 : 0;
		rv = err_set(err, AVA_EIO, "%.*s", *said ? (int)strcspn(said, "\n") : 28,
			     *said ? said : "avad ended without a reason");
		if (WIFEXITED(status) && WEXITSTATUS(status) == HELPER_IN_USE)
			rv = AVA_EBUSY;
	}
	buf_fini(&complaint);
	return rv;
}

int helper_ask(const char *const *words, json_t **out, struct ava_error *err)
{
	char avad[ROOT_PATH_MAX];
	struct buf answer;
	int rv = start_find(avad, sizeof(avad), err);

	*out = NULL;
	buf_init(&answer, HELPER_MAX);
	if (rv == 0)
		rv = helper_run(avad, words, &answer, err);
	if (rv == 0 && buf_check(&answer) != 0)
		rv = err_set(err, buf_check(&answer), "the answer of avad cannot be kept");
	if (rv == 0) {
		*out = json_parse(answer.data != NULL ? answer.data : "", answer.len, err);
		rv = *out != NULL ? 0 : AVA_EPROTO;
	}
	buf_fini(&answer);
	return rv;
}

/* Recovery before reading.
 *
 * A daemon that answers has recovered already, and one that ended in order left
 * a mark. Else avad is run once to redo what the views lack: it takes the lock
 * of the root itself, so two readers, or a daemon that starts meanwhile, do
 * not get in each other's way: who comes second waits a moment for the other. */

#define GONE_LOOK_MS 50 /* is the daemon gone? */
#define IN_USE_MS    100
#define IN_USE_WAIT  3 /* tries; a program that embeds ava keeps its root for ever */

static bool served(int rootfd)
{
	int fd;

	if (unix_sock_connect(rootfd, UNIX_SOCK_NAME, 1000, &fd, NULL) != 0)
		return false;
	close(fd);
	return true;
}

static void api_recover(int rootfd)
{
	static const char *const words[] = {"--recover", NULL};
	char avad[ROOT_PATH_MAX];
	struct ava_error err;
	struct stat st;
	struct buf out;
	int rv;

	if (fstatat(rootfd, "wal", &st, 0) != 0 || read_is_clean(rootfd) || served(rootfd))
		return;
	if (start_find(avad, sizeof(avad), &err) != 0) {
		cli_note("reading without recovery: %s", err.text);
		return;
	}
	buf_init(&out, 8192);
	rv = helper_run(avad, words, &out, &err);
	for (int i = 0; rv == AVA_EBUSY && i < IN_USE_WAIT; i++) {
		pause_ms(IN_USE_MS);
		if (read_is_clean(rootfd) || served(rootfd))
			rv = 0;
		else
			rv = helper_run(avad, words, &out, &err);
	}
	buf_fini(&out);
	/* A daemon may have started meanwhile: it has the lock and recovered. */
	if (rv != 0 && rv != AVA_EBUSY && !served(rootfd))
		cli_note("recovery before reading did not succeed; `avad --recover` says why");
}

bool root_is_held(void)
{
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	int fd = settings_data_root(root, sizeof(root), &err) == 0
			 ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			 : -1;
	bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;

	if (fd >= 0)
		close(fd);
	return held;
}

int root_wait_gone(const char *root, struct ava_error *err)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rv = fd < 0 ? err_sys(err, "%.300s", root) : 0;

	while (rv == 0 && flock(fd, LOCK_SH | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			rv = err_sys(err, "%.300s", root);
		pause_ms(GONE_LOOK_MS);
	}
	if (fd >= 0)
		close(fd);
	return rv;
}

int root_prepare(char path[ROOT_PATH_MAX], struct ava_error *err)
{
	int rv = settings_data_root(path, ROOT_PATH_MAX, err), rootfd;

	if (rv != 0)
		return rv;
	rootfd = read_open_root(path, err);
	if (rootfd < 0)
		return rootfd;
	api_recover(rootfd);
	close(rootfd);
	return 0;
}

bool root_is_shared(void)
{
	char path[ROOT_PATH_MAX], file[ROOT_PATH_MAX + 16];

	if (settings_data_root(path, sizeof(path), NULL) != 0)
		return false;
	snprintf(file, sizeof(file), "%s/cluster.json", path);
	return access(file, F_OK) == 0;
}

/* `path`: the root on both sides of the call. */
static int root_fetch_run(char path[ROOT_PATH_MAX], const char *run, struct ava_error *err)
{
	char verb[64];
	json_t *answer = NULL;
	int rv;

	snprintf(verb, sizeof(verb), "/runs/%.40s/fetch", run);
	rv = api_post(&answer, err, verb, NULL);
	if (rv == 0 && *json_str(answer, "root"))
		snprintf(path, ROOT_PATH_MAX, "%s", json_str(answer, "root"));
	json_decref(answer);
	return rv;
}

int root_refresh_run(const char *run, struct ava_error *err)
{
	char path[ROOT_PATH_MAX];

	return root_fetch_run(path, run, err);
}

int root_prepare_run(char path[ROOT_PATH_MAX], const char *run, bool *other, struct ava_error *err)
{
	char root[ROOT_PATH_MAX], log[ROOT_PATH_MAX + 80];
	int rv = root_prepare(path, err), fd;
	bool ended;

	if (other)
		*other = false;
	if (rv != 0 || !run || !id_is_run(run) || !root_is_shared())
		return rv;
	fd = read_open_root(path, err);
	ended = fd >= 0 && read_run_ended(fd, run);
	if (fd >= 0)
		close(fd);
	if (ended)
		return 0;
	snprintf(root, sizeof(root), "%s", path);
	rv = root_fetch_run(path, run, err);
	snprintf(log, sizeof(log), "%s/logs/subagents/%.40s.jsonl", root, run);
	if (rv != 0 && rv != AVA_ECORRUPT && access(log, F_OK) == 0) {
		cli_note("this is what was here of %s: %s", run, err->text);
		return 0;
	}
	if (other)
		*other = rv == 0 && strcmp(root, path) != 0;
	return rv;
}
