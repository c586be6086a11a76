/* Notices for Ava that wait for her next turn (talk_note.c). */
#ifndef AVA_TALK_NOTE_H
#define AVA_TALK_NOTE_H

#include "base/list.h"

struct draft;
struct session;
struct talk;

/* A notice that goes before the next input. */
struct talk_note {
	struct list node;
	char id[40]; /* of its mark on disk; "": it has none */
	char text[];
};

/* A notice, told before the next input. `id` "": of this process only; else
 * talk_note_write has put it into a commit. One of an id is enough. */
void talk_note(struct talk *t, const char *id, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Its mark, into the commit that it tells of. */
void talk_note_write(const struct session *s, struct draft *d, const char *id, const char *text);
void talk_note_keep(struct list *notes, const char *id, const char *text);
struct talk_note *talk_note_find(const struct list *notes, const char *id);
void talk_note_free(struct talk_note *n);
void talk_note_told(struct talk *t); /* all of them */

#endif
