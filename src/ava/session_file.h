/* The file of a conversation as it is shown: its title and header, and its entries. */
#ifndef AVA_SESSION_FILE_H
#define AVA_SESSION_FILE_H

struct ava_error;
struct session;
struct verb_work;

/* Fills folder, title, person, door and model from the first and last lines. */
void session_file_show(struct session *s);
/* Takes the person's first words; without memory a later call looks again. */
void session_file_title(struct session *s, const char *text);
/* Work of a verb: writes "entries", and "unreadable" for broken lines; `own` is the path. */
int session_file_entries(struct verb_work *w, struct ava_error *err);

#endif
