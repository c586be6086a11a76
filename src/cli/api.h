/* The daemon, avad and the data root as commands use them. */
#ifndef CLI_API_H
#define CLI_API_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "client/follow.h"

struct ava_error;
struct jw;

#define ROOT_PATH_MAX 4096

void pause_ms(long ms);

enum api_open {
	API_LOOK, /* never start a daemon */
	/* Start a daemon when none answers; an older daemon makes room for a new one when it has
	 * nothing to do (else a note says so). */
	API_START,
	/* As API_START for a request that begins something: an unwell daemon refuses it and says
	 * why, so that no note is needed. */
	API_BEGIN,
	API_SILENT, /* start one when none answers, and leave it at that: no look at it, no note */
};
/* A connection of one's own to the daemon of this user's data root. */
int api_connect(enum api_open as, struct client **c, struct ava_error *err);

/* The command's one connection: made here, or by the first request (API_START), made anew when it
 * breaks, and closed when the command ends. */
int api_open(enum api_open as, struct ava_error *err);
void api_close(void);
bool api_is_open(void);
/* Requests end with AVA_ETIMEOUT at `at_ms` (clock_mono_ms); -1: when they last too long. */
void api_deadline(int64_t at_ms);

/* A body (*owned*, buf_fini) of at most `max` bytes whose object is open. */
void api_body(struct jw *w, struct buf *body, size_t max);
/* One exchange with a JSON answer: a GET, with `body` a POST. *out is a new reference;
 * *status (may be NULL) the HTTP status. 0, or what the daemon answered as an error. When no
 * answer comes soon a note says what the daemon waits for; a POST that gets no answer
 * is AVA_EUNKNOWN. */
int api_call(const char *path, const char *body, json_t **out, int *status, struct ava_error *err);
/* The same. An exit code; why it failed has been said. */
int api_ask(json_t **out, const char *body, const char *path_fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Note which half of a service's settings is missing when the offline model stands in for it.
 * `model`: the one used; `asked`: the user named it, which explains enough. */
void api_tell_lacks(const char *model, bool asked);

/* A request that is safe to repeat (a GET, a request_id, an answer to a proposal): again over a new
 * connection when the outcome is unknown or the daemon went away, five times at most. */
int api_request(const char *body, json_t **out, struct ava_error *err, const char *path_fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* api_request with a body of texts: names and values by turns, NULL ends them. An empty value
 * stands as it is. *out may be NULL. */
int api_post(json_t **out, struct ava_error *err, const char *path, ...) __attribute__((sentinel));
/* Tell a run a person's words: for its call `call` that waits, or NULL: whatever it is doing. */
int api_steer(const char *run, const char *call, const char *text, json_t **out,
	      struct ava_error *err);
/* "0.2.0" against "0.10.0": below, equal, above zero. */
int api_compare_versions(const char *a, const char *b);

/* Result of an ended run: *result is set. NULL and 0 when it still runs after
 * `wait_s` seconds (at most 30; 0: do not wait). */
int api_result(const char *run, int wait_s, json_t **result, struct ava_error *err);

struct follow {
	const char *run; /* NULL: of all, from now on */
	bool items;      /* Items (doc/ITEMS.md) in place of events */
	/* *Borrowed during the call.* Positive stops; negative: it has not been taken, the
	 * stream is opened anew before it. NULL: each end of a run (an Item) calls `look`. */
	int (*on_event)(const struct sse_event *e, void *user);
	/* Called behind each new connection, and when clock_mono_ms() has passed f->tick_ms (0:
	 * never), which it sets anew. Positive stops; a code as of the stream. NULL: none. */
	int (*look)(struct follow *f, void *user, struct ava_error *err);
	int64_t tick_ms;
	int64_t until_ms; /* clock_mono_ms; 0: never */
	/* A signal handler set *interrupt: ask for what should happen. Non-zero ends the
	 * following with that code. NULL: AVA_ECANCELED ends it. */
	int (*on_interrupt)(void *user, struct ava_error *err);
	volatile sig_atomic_t *interrupt; /* NULL: none */
	void *user;
};
/* Events or Items through restarts of the daemon and lost connections, each once, in order, over a
 * connection of its own: until the run has ended or it is f->until_ms (0), a function says stop
 * (its value), or it cannot go on (a code), which is a minute after a daemon was there. */
int api_follow(struct follow *f, struct ava_error *err);

/* avad's output for these arguments (NULL-terminated), JSON; a new reference. AVA_EIO with avad's
 * own sentence when it fails, AVA_EBUSY when another program has the root. */
int helper_ask(const char *const *words, json_t **out, struct ava_error *err);

/* Has anybody, a daemon mostly, the lock of the data root? */
bool root_is_held(void);
/* Wait until nobody has it any more. */
int root_wait_gone(const char *root, struct ava_error *err);
/* The path of the data root for commands that read it without a daemon, and after a crash
 * `avad --recover` first when nobody serves it, so that what was acknowledged can be read.
 * A recovery that fails is a note on stderr: reading goes on with what is there.
 * 0 or a code when there is no such root. */
int root_prepare(char path[ROOT_PATH_MAX], struct ava_error *err);
/* The same for the files of `run` (NULL: of any): where another machine of the cluster has it the
 * daemon brings a copy up to date, and `path` is where that is. *other (NULL: not asked): it is
 * so. */
int root_prepare_run(char path[ROOT_PATH_MAX], const char *run, bool *other, struct ava_error *err);
/* Brings that copy up to date again. */
int root_refresh_run(const char *run, struct ava_error *err);
/* Does this user's data root share its runs with other machines? */
bool root_is_shared(void);

#endif
