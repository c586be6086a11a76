/* What a person says to a run: the answer to what it asks, or a message that it
 * reads at the next turn boundary (subagent/person.c).
 *
 * The runtime itself reads a yes or no (ava/answer.h): what it does not
 * understand starts nothing and is asked again. What can fail: the run has
 * ended, or asks something else by now; memory. */
#include "ava/steer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ava/answer.h"
#include "ava/state.h"
#include "base/error.h"
#include "codec/json.h"
#include "subagent/person.h"

struct steering {
	char run[24], call_id[16];
	bool answers;
	op_steered_fn done;
	void *user;
};

static void on_disk(int rv, const char *steer_id, void *user)
{
	struct steering *s = user;
	struct ava_error err = {0};
	struct op_steered o = {
		.run = s->run,
		.outcome = s->answers ? "answered" : "queued",
		.steer_id = steer_id,
		.call_id = s->call_id,
	};

	if (rv == 0)
		s->done(0, &o, NULL, s->user);
	else {
		err_set(&err, rv, "run %s ended, or the runtime stops, before that was kept",
			s->run);
		s->done(rv, NULL, &err, s->user);
	}
	free(s);
}

/* ---- answers */

/* The choice that its number names; NULL: it names none. */
static char *choice_of(const struct question *q, const char *text)
{
	json_t *choices = q->choices ? json_parse(q->choices, strlen(q->choices), NULL) : NULL;
	char *end, *copy = NULL;
	long n = strtol(text, &end, 10);

	if (end != text && *end == 0 && n >= 1 && (size_t)n <= json_array_size(choices)) {
		const json_t *v = json_array_get(choices, (size_t)n - 1);

		copy = json_is_string(v) ? strdup(json_string_value(v)) : NULL;
	}
	json_decref(choices);
	return copy;
}

static bool begins_with_no(const char *text)
{
	text += strspn(text, " \t\r\n");
	return strncasecmp(text, "no", 2) == 0 && strchr(" ,.:;!-\n", text[2]) != NULL;
}

/* Does it allow the call? AVA_EINVAL: that is not clear. */
static int allows(const char *text, bool *yes, struct ava_error *err)
{
	struct change change;
	enum answer a = answer_parse(text, &change);

	*yes = a == ANSWER_YES;
	if (a == ANSWER_YES || a == ANSWER_NO || begins_with_no(text))
		return 0;
	return err_set(err, AVA_EINVAL,
		       "answer yes or no, a no with its reason if you like (\"no: not in this "
		       "folder\"); a yes cannot change the call");
}

static int answer(struct run *r, const struct question *q, const char *text, const char *by,
		  struct steering *s, struct ava_error *err)
{
	char *chosen = NULL;
	bool yes = false;
	int rv = 0;

	if (q->approval && !by)
		rv = err_set(err, AVA_EDENIED,
			     "run %s asks for a yes that only the person's own words give: they "
			     "answer with /steer %s yes, or no",
			     s->run, s->run);
	else if (q->approval)
		rv = allows(text, &yes, err);

	if (rv != 0)
		return rv;
	if (!q->approval)
		chosen = choice_of(q, text);
	s->answers = true;
	memcpy(s->call_id, q->call_id, sizeof(s->call_id));
	rv = person_answer(r, chosen ? chosen : text, yes, by ? by : "ava", on_disk, s, err);
	free(chosen);
	return rv;
}

/* ---- */

struct gone {
	const char *run;
	struct ava_error *err;
};

static void has_ended(const struct op_status *s, void *user)
{
	struct gone *g = user;

	err_set(g->err, AVA_EEXIST, "run %s has ended (%s): nobody is left to read it", g->run,
		ava_status_name(s->status));
}

static int steer(struct core *c, const char *run, const char *text, const char *call_id,
		 const char *by, struct steering *s, struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, run);
	const struct question *q = r ? person_question(r) : NULL;
	struct gone gone = {run, err};
	int rv;

	if (!r) {
		rv = ops_status(c, run, has_ended, &gone, err);
		return rv != 0 ? rv : AVA_EEXIST;
	}
	if (r->agent.ending)
		return err_set(err, AVA_EEXIST, "run %s is ending: it reads nothing any more", run);
	if (!r->durable || r->abandoned)
		return err_set(err, AVA_EBUSY, "run %s cannot be told anything now: ask again",
			       run);
	if (call_id && *call_id && (!q || strcmp(q->call_id, call_id) != 0))
		return err_set(
			err, AVA_ENOENT,
			"run %s does not ask %.15s (any more): `ava status %s` shows what it "
			"asks",
			run, call_id, run);
	if (q)
		return answer(r, q, text, by, s, err);
	return person_steer(r, text, by ? by : "ava", on_disk, s, err);
}

void ops_steer(struct core *c, const char *run, const char *text, const char *call_id,
	       const char *by, op_steered_fn done, void *user)
{
	struct steering *s = calloc(1, sizeof(*s));
	struct ava_error err = {0};
	int rv;

	if (s) {
		snprintf(s->run, sizeof(s->run), "%s", run);
		s->done = done;
		s->user = user;
		rv = steer(c, run, text ? text : "", call_id, by, s, &err);
	} else {
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0)
		return;
	free(s);
	done(rv, NULL, &err, user);
}
