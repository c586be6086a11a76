/* Notices that wait for the next turn: what became of a proposal, why the last
 * turn has no answer. What changes the disk anyway writes its notice into the
 * same commit, as a mark beside the conversation; the turn that tells it has
 * another mark. So one that a stop kept from being told is told after it
 * (talk_restore.c). Without memory a notice is not told before the next start. */
#include "ava/talk_note.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/notice.h"
#include "ava/proposal.h"
#include "ava/talk.h"
#include "base/sys.h"
#include "codec/json.h"

#define NOTES_MAX  64 /* the oldest make room */
#define NOTE_BYTES 1024

void talk_note_free(struct talk_note *n)
{
	list_del(&n->node);
	free(n);
}

struct talk_note *talk_note_find(const struct list *notes, const char *id)
{
	LIST_EACH (notes, at, tmp) {
		struct talk_note *n = LIST_ENTRY(at, struct talk_note, node);

		if (strcmp(n->id, id) == 0)
			return n;
	}
	return NULL;
}

void talk_note_keep(struct list *notes, const char *id, const char *text)
{
	struct talk_note *n;
	unsigned count = 0;

	if (id[0] && talk_note_find(notes, id))
		return;
	n = malloc(sizeof(*n) + strlen(text) + 1);
	if (!n)
		return;
	snprintf(n->id, sizeof(n->id), "%s", id);
	memcpy(n->text, text, strlen(text) + 1);
	list_add(notes, &n->node);
	LIST_EACH (notes, at, tmp)
		count++;
	if (count > NOTES_MAX)
		talk_note_free(LIST_FIRST(notes, struct talk_note, node));
}

void talk_note(struct talk *t, const char *id, const char *fmt, ...)
{
	char text[NOTE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	talk_note_keep(&t->notes, id, text);
}

void talk_note_told(struct talk *t)
{
	while (!list_empty(&t->notes))
		talk_note_free(LIST_FIRST(&t->notes, struct talk_note, node));
}

/* ---- on disk */

void talk_note_write(const struct session *s, struct draft *d, const char *id, const char *text)
{
	char path[LOGBOOK_PATH];
	struct stat st;
	struct buf *b;
	struct jw w;

	/* A conversation without a line yet begins with its head, not with this. */
	if (talk_messages_path(s, path) != 0 || sys->fstatat(s->core->root_fd, path, &st, 0) != 0 ||
	    st.st_size == 0)
		return;
	b = draft_part(d, DRAFT_MESSAGES, path);
	if (!b)
		return;
	jw_init(&w, b);
	jw_object(&w, NULL);
	jw_object(&w, "mark");
	jw_str(&w, "note", id);
	jw_str(&w, "text", text);
	jw_end(&w);
	jw_end(&w);
	buf_addc(b, '\n');
}

/* ---- what became of a proposal */

static void answer_text(const struct proposal *p, enum proposal_step step, char out[NOTE_BYTES])
{
	if (step == STEP_CONFIRMED)
		snprintf(out, NOTE_BYTES, "The person confirmed %s: %s (%s) has started.", p->id,
			 p->run, p->trace);
	else if (step == STEP_REPLACED)
		snprintf(out, NOTE_BYTES,
			 "The person wants it otherwise: %s is a new quote and waits.",
			 p->replaced_by);
	else
		snprintf(out, NOTE_BYTES, "%s %s: nothing was started.", p->id,
			 step == STEP_REJECTED ? "was rejected by the person" : "has expired");
}

void sessions_answering(struct core *c, struct draft *d, const struct proposal *p,
			const char *session_id)
{
	const struct session *s = strmap_get(&c->session_by_id, session_id);
	char text[NOTE_BYTES];

	if (!s || !s->there)
		return;
	answer_text(p, p->answer->to, text);
	talk_note_write(s, d, p->id, text);
}

void sessions_answered(struct core *c, const struct proposal *p, const char *session_id,
		       struct run *r)
{
	struct session *s = strmap_get(&c->session_by_id, session_id);
	struct ava_error err = {0};
	char text[NOTE_BYTES];

	if (!s)
		return;
	if (session_load(s, &err) != 0) {
		core_log(c, "session %s cannot be taken up: %s", s->id, err.text);
		return;
	}
	if (r && talk_watch_run(s->talk, r) != 0)
		core_log(c, "the result of %s will be told at the next start: out of memory",
			 r->id.text);
	answer_text(p, p->step, text);
	talk_note_keep(&s->talk->notes, p->id, text);
}
