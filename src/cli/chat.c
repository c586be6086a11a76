/* A conversation with Ava as a person has it, at a terminal or over a pipe; chat.h.
 *
 * Happy path: it is opened and followed (dialog.h). News is taken one by one: what has no
 * output (a piece of a block of text) at once, the rest when the line being typed is out of the
 * way. Lines of Items are those of every channel (face.h). Quotes are asked of the
 * daemon, which words them, and stand behind what Ava says in the same turn.
 *
 * What can fail: the daemon does not start, there is no such conversation. A message whose
 * acknowledgement was lost is looked for in the conversation before it is said again. A request for
 * what waits: then the command that shows them is named. An acknowledgement, silently. */
#include "cli/chat.h"

#include <ava.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/front.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define READ_MS    1000 /* nobody reads an Ask faster */
#define HOLD_MS    3000 /* a quote waits so long for Ava's words about it */
#define PAST_CHARS 4000
#define TAIL_MS    100   /* pause between two redraws of a text under way */
#define QUIET_MS   3000  /* silence after which a line that is written over says so */
#define LOOK_MS    1000  /* pause between two looks at Ava's activity */
#define LINE_MS    10000 /* silence after which a line that stays says so */

/* ---- opening */

/* The newest conversation of this folder. */
static int find_latest(struct chat *c, char id[64], struct ava_error *err)
{
	json_t *all = NULL;
	const json_t *s;
	size_t i;
	int rv = api_request(NULL, &all, err, "/sessions?limit=1000");

	id[0] = '\0';
	json_array_foreach(json_object_get(all, "sessions"), i, s)
	{
		/* A conversation without a title has no message yet. */
		if (id[0] == '\0' && strcmp(json_str(s, "cwd"), c->d.cwd) == 0 &&
		    json_str(s, "title")[0] != '\0')
			snprintf(id, 64, "%s", json_str(s, "session_id"));
	}
	json_decref(all);
	return rv != 0 || id[0] != '\0'
		       ? rv
		       : err_set(err, AVA_ENOENT,
				 "there is no conversation of this folder yet: begin one with "
				 "\"ava\"");
}

int chat_open(struct chat *c, const char *session, const char *model, struct ava_error *err)
{
	char latest[64];
	int rv;

	*c = (struct chat){0};
	dialog_init(&c->d, false);
	speech_init(&c->speech);
	rv = task_cwd(&c->d.cwd, err);
	if (rv == 0 && session != NULL && strcmp(session, "latest") == 0) {
		rv = find_latest(c, latest, err);
		session = latest;
	}
	if (rv == 0)
		rv = dialog_open(&c->d, session, model, err);
	if (rv == 0 && session != NULL && model != NULL)
		rv = dialog_model(&c->d, model, err);
	if (rv == 0)
		api_tell_lacks(c->d.model, model != NULL || session != NULL);
	return rv;
}

void chat_close(struct chat *c)
{
	dialog_acknowledge(&c->d, c->noticed, false);
	dialog_fini(&c->d);
	dialog_free(c->next);
	speech_fini(&c->speech);
}

/* ---- saying */

static void notice(struct chat *c, uint64_t lsn)
{
	c->noticed = MAX(c->noticed, lsn);
}

/* ---- silence */

static void silence_begins(struct chat *c)
{
	c->quiet_ms = clock_mono_ms();
	c->tell_ms = c->quiet_ms + (c->live ? QUIET_MS : LINE_MS);
	c->doing[0] = '\0';
}

int chat_look(struct chat *c, struct ava_error *err)
{
	json_t *s = NULL;
	int rv = dialog_get(&c->d, &s, err);
	const char *doing = json_str(s, "doing");

	c->doing[0] = '\0';
	if (rv == 0 && c->d.busy)
		snprintf(c->doing, sizeof(c->doing),
			 WORDS_AVA_IS(doing[0] != '\0' ? doing : WORDS_AVA_AT_WORK));
	json_decref(s);
	return rv;
}

/* Without a line to write over, silence is told at 10 s, 30 s, 90 s: each three times the last. */
static void tell_silence(struct chat *c)
{
	int64_t now = clock_mono_ms();

	(void)chat_look(c, NULL);
	c->tell_ms = c->live ? now + LOOK_MS : c->quiet_ms + 3 * (now - c->quiet_ms);
	if (!c->live && c->doing[0] != '\0') {
		speech_close(&c->speech);
		chat_note("%s", c->doing);
	}
}

static bool silence_due(const struct chat *c)
{
	return c->d.busy && !c->d.lost && clock_mono_ms() >= c->tell_ms;
}

static bool stop_due(const struct chat *c)
{
	return c->stopped_ms > 0 && clock_mono_ms() >= c->stopped_ms;
}

/* The Ask is what was shown last. */
static void chat_is_last(struct chat *c, const char *id)
{
	memcpy(c->stood, c->shown, sizeof(c->stood));
	snprintf(c->shown, sizeof(c->shown), "%s", id);
	c->shown_ms = clock_mono_ms();
}

/* Something else was shown behind it. */
static void chat_else_is_last(struct chat *c)
{
	c->shown[0] = c->stood[0] = '\0';
}

void chat_begin_line(struct chat *c, bool typed)
{
	bool unread = typed && clock_mono_ms() - c->shown_ms < READ_MS;

	memcpy(c->before, unread ? c->stood : c->shown, sizeof(c->before));
}

int chat_say(struct chat *c, const char *text, struct ava_error *err)
{
	dialog_acknowledge(&c->d, c->noticed, false); /* who answers has seen the notices */
	c->turns = 0;
	c->held[0] = '\0';
	silence_begins(c);
	return dialog_say(&c->d, text, c->before, err);
}

/* ---- what was not seen. What is behind the beginning comes as events */

/* Show the rest of Ava's text. The note on a text that the Item cut is left out when the stream
 * brought more than the Item has: then nothing is missing. */
static void show_hers(struct chat *c, const json_t *item)
{
	const char *text = json_str(item, "text");

	chat_else_is_last(c);
	speech_whole(&c->speech, stdout, text, strlen(text));
	if (json_get_bool(item, "cut", false) && c->speech.text.len == 0)
		chat_note(WORDS_CUT);
	if (json_str(item, "ask")[0] != '\0')
		chat_is_last(c, json_str(item, "ask"));
}

static void chat_show_notice(struct chat *c, const json_t *item, enum item_kind kind)
{
	if (kind == ITEM_said) {
		show_hers(c, item);
		speech_close(&c->speech);
	} else if (kind != ITEM_proposed && kind != ITEM_asked) { /* shown on their own */
		chat_else_is_last(c);
		term_print(stdout, "%s\n", json_str(item, "title"));
	}
}

static int show_unseen(struct chat *c, bool *words, struct ava_error *err)
{
	json_t *unseen = NULL;
	const json_t *item;
	enum item_kind kind;
	size_t i;
	int rv;

	*words = false;
	rv = api_request(NULL, &unseen, err, "/sessions/%s/unseen?channel=terminal", c->d.id);
	if (rv != 0)
		return rv;
	if (json_str(unseen, "summary")[0] != '\0') {
		term_colour(stdout, TERM_BOLD);
		term_str(stdout, json_str(unseen, "summary"));
		term_colour(stdout, TERM_PLAIN);
		putchar('\n');
	}
	json_array_foreach(json_object_get(unseen, "items"), i, item)
	{
		uint64_t lsn = (uint64_t)json_get_int(item, "lsn", 0);

		if (lsn > c->d.seen)
			continue;
		kind = item_kind_of(json_str(item, "kind"));
		chat_show_notice(c, item, kind);
		notice(c, lsn);
		*words |= kind == ITEM_said;
	}
	json_decref(unseen);
	fflush(stdout);
	dialog_acknowledge(&c->d, c->noticed, false);
	return 0;
}

void chat_note(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	term_colour(stdout, TERM_DIM);
	term_wrapped(stdout, text, strlen(text));
	term_colour(stdout, TERM_PLAIN);
	putchar('\n');
}

/* ---- what waits */

static bool was_shown(const struct chat *c, const char *ask)
{
	for (size_t i = 0; i < MIN(c->nasks, (size_t)CHAT_ASKS_MAX); i++)
		if (strcmp(c->asks[i], ask) == 0)
			return true;
	return false;
}

/* The Ask was shown, last. */
static void chat_shown(struct chat *c, const char *id)
{
	snprintf(c->asks[c->nasks++ % CHAT_ASKS_MAX], sizeof(c->asks[0]), "%s", id);
	chat_is_last(c, id);
	front_tell(stdout, WORDS_WAITS(id, ""));
}

static const char *chat_who(struct chat *c, const char *run)
{
	const struct chat_run *known = chat_runs_find(&c->runs, run);

	return known != NULL ? known->shown.who : "subagent";
}

/* A quote that did not wait for Ava's words stands behind them once more, in a line: a yes answers
 * what was shown last. */
static void chat_show_again(struct chat *c)
{
	speech_close(&c->speech);
	term_print(stdout, "%s: Proceed? [Yes/No]\n", c->held);
	chat_is_last(c, c->held);
}

/* Show what waits and was not shown yet. */
static int chat_show_asks(struct chat *c, struct ava_error *err)
{
	json_t *all = NULL;
	const json_t *ask;
	size_t i;
	int rv = dialog_asks(&c->d, &all, err);

	c->asks_ms = 0;
	json_array_foreach(all, i, ask)
	{
		const char *id = json_str(ask, "id"), *text = json_str(ask, "text");

		if (!c->d.busy && c->shown[0] == '\0' && strcmp(id, c->held) == 0)
			chat_show_again(c);
		/* A patch is shown with its result. */
		if (was_shown(c, id) || strcmp(json_str(ask, "kind"), "apply") == 0)
			continue;
		speech_close(&c->speech);
		if (id[0] == 'S') {
			face_question(stdout, ask, chat_who(c, json_str(ask, "run")), true);
		} else {
			term_wrapped(stdout, text, strlen(text));
			putchar('\n');
		}
		chat_shown(c, id);
		if (c->d.busy && id[0] == 'P')
			snprintf(c->held, sizeof(c->held), "%s", id);
	}
	if (!c->d.busy)
		c->held[0] = '\0';
	json_decref(all);
	return rv;
}

/* ---- Items */

static void show_said(struct chat *c, const json_t *item)
{
	static const char elsewhere[] = "You, elsewhere: ";
	const char *text = json_str(item, "text");

	if (json_str(item, "run")[0] != '\0') /* to a run, which tells what came of it */
		return;
	if (strcmp(json_str(json_object_get(item, "detail"), "by"), "person") != 0) {
		show_hers(c, item);
		return;
	}
	chat_else_is_last(c);
	speech_close(&c->speech);
	term_colour(stdout, TERM_BOLD);
	fputs(elsewhere, stdout);
	term_colour(stdout, TERM_PLAIN);
	term_theirs(stdout, term_width(stdout), text, strlen(text), sizeof(elsewhere) - 1);
	putchar('\n');
}

/* The run of an Item, which is known from then on. NULL: as many are live as can be kept. */
static struct chat_run *chat_run_of(struct chat *c, const json_t *item, enum item_kind kind)
{
	const char *id = json_str(item, "run"), *role = json_str(item, "role");
	struct chat_run *run = chat_runs_find(&c->runs, id);

	if (run != NULL && kind != ITEM_started)
		return run;
	return chat_runs_begin(&c->runs, id, role[0] != '\0' ? role : "subagent", clock_mono_ms());
}

/* The event of a memory has only its key; its text is asked for, so that it can be forgotten. */
static bool show_memory(struct chat *c, const json_t *item)
{
	const json_t *detail = json_object_get(item, "detail");
	const char *key = json_str(detail, "memory");
	json_t *row = NULL;
	bool had = key[0] != '\0' && strcmp(json_str(detail, "change"), "removed") != 0 &&
		   api_request(NULL, &row, NULL, "/memories/%s", key) == 0;

	if (had)
		chat_note("Noted: %s (%s; `ava memory` shows all)", json_str(row, "text"), key);
	json_decref(row);
	return had;
}

static void chat_show_run(struct chat *c, const struct dialog_news *n)
{
	struct chat_run *run = chat_run_of(c, n->item, n->is);
	struct progress p;

	progress_init(&p, stdout, json_str(n->item, "role"));
	p.chat = true;
	progress_item(run != NULL ? &run->shown : &p, n->item);
	if (run != NULL && (n->is == ITEM_result || n->is == ITEM_failed))
		run->live = false;
}

static void chat_show_item(struct chat *c, const struct dialog_news *n)
{
	const char *ask = json_str(n->item, "ask");
	bool of_run = json_str(n->item, "run")[0] != '\0';

	if (n->is == ITEM_said)
		show_said(c, n->item);
	if (face_is_silent(n->item) || (n->is == ITEM_asked && was_shown(c, ask)))
		return;
	if (n->is != ITEM_doing)
		chat_else_is_last(c);
	speech_close(&c->speech);
	if (of_run && n->is != ITEM_answered)
		chat_show_run(c, n);
	else if (n->is != ITEM_noted || !show_memory(c, n->item))
		face_item(stdout, n->item, "", true);
	c->errors += n->is == ITEM_failed && !of_run;
	if (n->is == ITEM_asked)
		chat_shown(c, ask);
}

/* The Item is a notice, for who was away, and counts as shown here. */
static bool chat_is_notice(const struct dialog_news *n)
{
	return n->is != ITEM_doing && n->is != ITEM_started && n->is != ITEM_answered;
}

/* ---- news */

/* News that changes nothing on the screen. False: it is to be shown. */
static bool take_in(struct chat *c, const struct dialog_news *n)
{
	switch (n->kind) {
	case DIALOG_TEXT:
		chat_else_is_last(c);
		silence_begins(c);
		speech_piece(&c->speech, n->text, n->len);
		return true;
	case DIALOG_IDLE:
		c->turns += c->d.nown == 0;
		c->doing[0] = '\0';
		c->stopped_ms = c->stopped_ms > 0 ? clock_mono_ms() : 0;
		if (c->held[0] != '\0' && c->shown[0] == '\0' && c->asks_ms == 0)
			c->asks_ms = clock_mono_ms();
		return true;
	case DIALOG_BUSY:
		silence_begins(c);
		return true;
	case DIALOG_OWN:
		return true;
	case DIALOG_ITEM:
		if (n->is != ITEM_proposed)
			return false;
		if (c->asks_ms == 0)
			c->asks_ms = clock_mono_ms() + HOLD_MS;
		notice(c, n->lsn); /* the notice counts as shown when Ava's turn is over */
		return true;
	default:
		return false;
	}
}

static void chat_show_news(struct chat *c, const struct dialog_news *n)
{
	switch (n->kind) {
	case DIALOG_ITEM:
		silence_begins(c);
		chat_show_item(c, n);
		if (chat_is_notice(n))
			notice(c, n->lsn);
		break;
	case DIALOG_LOST:
		speech_close(&c->speech);
		speech_cut(&c->speech);
		chat_note("The connection to the daemon is lost; it is made again.");
		break;
	case DIALOG_BACK:
		/* Ask whether Ava is at work. */
		c->turns += chat_look(c, NULL) == 0 && !c->d.busy;
		chat_note("Connected again.");
		break;
	case DIALOG_GONE:
		chat_note("The conversation cannot be followed any more: %s", n->text);
		break;
	default:
		break;
	}
}

static bool tail_changed(const struct chat *c)
{
	size_t len = 0;

	return c->live && (chat_tail(c, &len) != NULL ? len : 0) != c->tail_len;
}

static bool asks_due(const struct chat *c)
{
	return c->asks_ms > 0 && (!c->d.busy || clock_mono_ms() >= c->asks_ms);
}

static bool is_due(const struct chat *c)
{
	int64_t now = clock_mono_ms(), next = chat_runs_next(&c->runs);

	return asks_due(c) || (next >= 0 && next <= now) || speech_ready(&c->speech) ||
	       silence_due(c) || stop_due(c) || (tail_changed(c) && now >= c->tail_ms);
}

bool chat_wants(struct chat *c)
{
	for (;;) {
		if (c->next == NULL)
			c->next = dialog_take(&c->d);
		if (c->next == NULL) {
			bool due = is_due(c);

			if (!due && !c->d.busy)
				dialog_acknowledge(&c->d, c->noticed, false);
			return due;
		}
		if (is_due(c) || !take_in(c, c->next))
			return true;
		dialog_free(c->next);
		c->next = NULL;
	}
}

static void note_tail(struct chat *c)
{
	c->tail_len = 0;
	chat_tail(c, &c->tail_len);
	c->tail_ms = clock_mono_ms() + TAIL_MS;
}

static void show_due(struct chat *c)
{
	struct ava_error err = {0};
	struct chat_run *run;
	json_t *status;

	speech_show(&c->speech, stdout);
	if (silence_due(c))
		tell_silence(c);
	if (stop_due(c)) {
		c->stopped_ms = 0;
		/* No event brings the rest of a stopped reply. */
		speech_whole(&c->speech, stdout, c->speech.text.data, c->speech.text.len);
		speech_close(&c->speech);
		chat_note("Ava's answer is stopped; subagents go on.");
	}
	note_tail(c);
	if (asks_due(c) && chat_show_asks(c, &err) != 0) {
		speech_close(&c->speech);
		chat_note(WORDS_WAITS("A quote", ""));
		chat_note("`ava asks` shows it: %s", err.text);
	}
	while ((run = chat_runs_due(&c->runs, clock_mono_ms())) != NULL) {
		speech_close(&c->speech);
		status = NULL;
		if (!c->d.lost) /* the status has the run's activity, which may be no event */
			(void)api_request(NULL, &status, NULL, "/runs/%s", run->id);
		progress_still_working(&run->shown, status);
		json_decref(status);
	}
}

void chat_show(struct chat *c)
{
	while (chat_wants(c)) {
		show_due(c);
		if (c->next == NULL)
			continue;
		if (!take_in(c, c->next))
			chat_show_news(c, c->next);
		dialog_free(c->next);
		c->next = NULL;
	}
	note_tail(c);
	fflush(stdout);
}

const char *chat_tail(const struct chat *c, size_t *len)
{
	const char *t = speech_tail(&c->speech, len);

	if (t != NULL || !c->live || c->doing[0] == '\0')
		return t;
	*len = strlen(c->doing);
	return c->doing;
}

int64_t chat_next(const struct chat *c)
{
	const int64_t due[] = {chat_runs_next(&c->runs),
			       c->asks_ms > 0 ? c->asks_ms : -1,
			       tail_changed(c) ? c->tail_ms : -1,
			       dialog_next(&c->d),
			       c->d.busy && !c->d.lost ? c->tell_ms : -1,
			       c->stopped_ms > 0 ? c->stopped_ms : -1};
	int64_t next = -1;

	for (size_t i = 0; i < ARRAY_LEN(due); i++)
		if (due[i] >= 0 && (next < 0 || due[i] < next))
			next = due[i];
	return next;
}

/* ---- an old conversation */

/* Text of a message: its text blocks, behind whose they are. */
static void chat_show_words(const char *whose, const json_t *message)
{
	bool cut = false, hers = strcmp(json_str(message, "role"), "assistant") == 0;
	size_t column = strlen(whose), i;
	const json_t *block;

	fputs(whose, stdout);
	json_array_foreach(json_object_get(message, "content"), i, block)
	{
		const char *text = json_str(block, "text");
		size_t len = strlen(text), shown = utf8_prefix(text, len, PAST_CHARS);

		if (strcmp(json_str(block, "type"), "text") != 0)
			continue;
		if (hers)
			markdown_show(stdout, text, shown, column);
		else
			term_theirs(stdout, term_width(stdout), text, shown, column);
		cut |= shown < len;
		column = 0;
	}
	if (!hers)
		putchar('\n');
	if (cut)
		chat_note(WORDS_CUT);
}

static bool chat_has_words(const json_t *entry, const char *role)
{
	const json_t *message = json_object_get(entry, "message"), *block;
	size_t i;

	if (strcmp(json_str(message, "role"), role) != 0)
		return false;
	json_array_foreach(json_object_get(message, "content"), i, block)
	{
		if (json_str(block, "text")[0] != '\0')
			return true;
	}
	return false;
}

/* The last thing the person said, of what does not come as events, and *ava, what
 * she answered. */
static void show_last(const struct chat *c, const json_t *entries, const json_t **ava)
{
	const json_t *entry, *user = NULL;
	size_t i, n = 0;

	json_array_foreach(entries, i, entry)
	{
		if (chat_has_words(entry, "user")) {
			user = entry;
			*ava = NULL;
			n++;
		} else if (chat_has_words(entry, "assistant")) {
			*ava = entry;
		}
	}
	chat_note("Conversation %s, %zu message%s of yours so far.", c->d.id, n, WORDS_S(n));
	if (user != NULL)
		chat_show_words("You: ", json_object_get(user, "message"));
}

static int show_open(struct chat *c, struct ava_error *err)
{
	json_t *runs = NULL;
	const json_t *run;
	size_t i;
	int rv = dialog_runs(&c->d, false, &runs, err);

	json_array_foreach(runs, i, run)
	{
		chat_runs_begin(&c->runs, json_str(run, "subagent_id"), json_str(run, "role"),
				clock_mono_ms());
		printf("%s ", json_str(run, "subagent_id"));
		progress_status(stdout, run);
	}
	json_decref(runs);
	return rv == 0 ? chat_show_asks(c, err) : rv;
}

int chat_show_past(struct chat *c, struct ava_error *err)
{
	const json_t *ava = NULL;
	json_t *all = NULL;
	bool words = false;
	int rv;

	rv = dialog_past(&c->d, &all, err);
	if (rv == 0) {
		show_last(c, all, &ava);
		if (c->d.unshown[0])
			chat_note("%s", c->d.unshown);
		rv = show_unseen(c, &words, err);
	}
	if (rv == 0 && ava != NULL && !words) /* words just shown are not repeated */
		chat_show_words("Ava: ", json_object_get(ava, "message"));
	json_decref(all);
	return rv == 0 ? show_open(c, err) : rv;
}
