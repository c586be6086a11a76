/* A conversation goes on with another model: POST /sessions/{id}/model; or in another folder, when
 * its own is gone.
 *
 * Happy path: an amendment of its messages and an entry of its file are one commit; the answer
 * comes when that is on disk, and later words stand behind it. The new model reads the old requests
 * byte for byte, so it must speak the same dialect. A conversation without words is begun anew with
 * any model.
 *
 * What can fail: the model (unknown, without a key, of another dialect), a turn under way; the
 * disk, which delays the commit and its answer. */
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "ava/talk.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "provider/dialect.h"
#include "subagent/run.h"
#include "subagent/session_entry.h"

struct talk_model_change {
	struct session *session;
	struct verb_reply *reply;
};

static void changed(int rv, void *user)
{
	struct talk_model_change *ch = user;

	session_send(ch->reply, ch->session);
	session_rest(ch->session->core);
	free(ch);
}

/* 0: answered when the change is on disk. */
static int change(struct session *s, struct verb_reply *reply, const struct model *m,
		  struct ava_error *err)
{
	struct talk *t = s->talk;
	struct talk_model_change *ch = malloc(sizeof(*ch));
	struct draft *d = ch ? draft_new(&s->core->book) : NULL;
	struct buf *line = d ? draft_part(d, DRAFT_MESSAGES, t->messages) : NULL, entry;
	struct session_entry e = {.wall_ms = clock_wall_ms()};
	char id[SESSION_ENTRY_ID];
	int rv = AVA_ENOMEM;

	if (line) {
		draft_entry_id(d, id);
		e.id = id;
		buf_init(&entry, 4096);
		session_model(&entry, &e, m);
		draft_entry(d, s->path, id, &entry);
		buf_fini(&entry);
		rv = draft_failed(d) ? AVA_ENOMEM : spec_switch(t->run.spec, m, line);
	}
	if (rv != 0) {
		draft_free(d);
		free(ch);
		return err_set(err, rv, "out of memory");
	}
	infer_changed(&t->run);
	t->run.call.changed = true;
	*ch = (struct talk_model_change){s, reply};
	outbox_put(&t->run.rec.outbox, d, JOURNAL_NOW, changed, ch);
	return 0;
}

/* Begins a conversation without words anew: nothing of it is on disk. */
static int begin_with(struct session *s, const struct model *m, struct ava_error *err)
{
	char *id = strdup(m->id);

	if (!id)
		return err_set(err, AVA_ENOMEM, "out of memory");
	free(s->model);
	s->model = id;
	talk_free(s->talk);
	s->talk = NULL;
	return session_load(s, err);
}

static bool is_idle(const struct talk *t)
{
	return !t->busy && !t->answering && list_empty(&t->inputs) && list_empty(&t->saying) &&
	       outbox_empty(&t->run.rec.outbox);
}

int session_settle(struct session *s, const char *cwd, struct ava_error *err)
{
	struct op_session is;
	char *folder;

	(void)ops_session(s->core, s->id, &is, NULL); /* takes the folder from the file */
	if (!cwd || !*cwd || strcmp(cwd, s->cwd) == 0 || spec_check_cwd(s->cwd, NULL) == 0 ||
	    spec_check_cwd(cwd, NULL) != 0 || (s->talk && !is_idle(s->talk)))
		return session_load(s, err);
	folder = strdup(cwd);
	if (!folder)
		return err_set(err, AVA_ENOMEM, "out of memory");
	core_log(s->core, "%s goes on in %s: %s is gone", s->id, cwd, s->cwd);
	if (s->talk)
		session_leave(s->talk);
	free(s->cwd);
	s->cwd = folder;
	return session_load(s, err);
}

static int talk_model_check(const struct session *s, const struct model *m, struct ava_error *err)
{
	const struct model *is = s->talk->run.spec->model;

	if (!is_idle(s->talk))
		return err_set(err, AVA_EBUSY,
			       "Ava is at work in this conversation: choose another model when "
			       "she has answered, or stop her");
	if (s->there && m->dialect != is->dialect)
		return err_set(
			err, AVA_EUNSUPPORTED,
			"%.100s cannot read what %.100s was told (it is spoken to in another "
			"way): begin a new conversation with it",
			m->id, is->id);
	return 0;
}

static const struct arg model_args[] = {{"model", ARG_SAID, 0, 1, 263}, {NULL}};

static void verb_session_model(struct verb_call *v)
{
	struct ava_error err = {0};
	struct session *s = session_find(v->core, v->id, &err);
	const char *id = "";
	bool done = false;
	struct model m;
	int rv;

	if (!verb_args(v, &id))
		return;
	rv = s ? model_resolve(id, &m, NULL, &err) : AVA_ENOENT;
	if (rv == 0)
		rv = session_load(s, &err);
	if (rv == 0)
		done = strcmp(s->talk->run.spec->model->id, m.id) == 0;
	if (rv == 0 && !done)
		rv = talk_model_check(s, &m, &err);
	if (rv == 0 && !done && !s->there) {
		rv = begin_with(s, &m, &err);
		done = true;
	}
	if (rv == 0 && !done)
		rv = change(s, v->reply, &m, &err);
	else if (rv == 0)
		session_send(v->reply, s);
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
}

/* true: the model speaks the dialect of the conversation, or there is no such conversation yet. */
bool session_takes(struct core *c, const char *session, const struct model *m)
{
	const struct session *s = session_find(c, session, NULL);
	struct op_session now;
	struct model is;

	return !s || !s->there || ops_session(c, session, &now, NULL) != 0 ||
	       model_restore(now.model, &is, NULL) != 0 || is.dialect == m->dialect;
}

const struct verb verbs_about_models[] = {
	{"POST", "/api/v1/sessions/{id}/model", verb_session_model, model_args, true},
	{NULL},
};
