/* The file of a conversation as it is shown: its title and header, and its entries. */
#ifndef AVA_SESSION_FILE_H
#define AVA_SESSION_FILE_H

struct ava_error;
struct session;
struct verb_work;

/* Folder, title, person, door and model, of its first lines and its last ones. */
void session_file_show(struct session *s);
/* The first words of the person; without memory they are looked for again. */
void session_file_title(struct session *s, const char *text);
/* A verb's work: "entries", and "unreadable" where lines are none; `own` is the path. */
int session_file_entries(struct verb_work *w, struct ava_error *err);

#endif
