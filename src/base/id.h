/* Ids and names: S- and P- ids from random UUID digits, session ids, trace
 * names such as brave-otter. Uniqueness is the caller's (nameset, catalog):
 * it asks for one more digit or the next suffix while a name is taken. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdbool.h>
#include <stddef.h>

struct run_id {
	char text[24]; /* "S-7f3a2b", never reused */
};
struct proposal_id {
	char text[24]; /* "P-19c0de" */
};
struct trace_name {
	char text[48]; /* "brave-otter", "brave-otter-2" */
};
struct session_id {
	char text[40]; /* a UUID, 36 characters */
};

void id_random(void *out, size_t len); /* getrandom; aborts when impossible */
struct session_id id_session(void);    /* UUID version 4, lower case */

/* `prefix` 'S' or 'P'; 6 digits first, one more each time taken() says yes. */
void id_short(char prefix, bool (*taken)(const char *id, void *user), void *user, char out[24]);
void id_trace_name(bool (*taken)(const char *name, void *user), void *user, struct trace_name *out);

/* Is the text "S-" ("P-" for a proposal) and 6 to 20 lower-case hex digits? */
bool id_is_run(const char *s);
bool id_is_proposal(const char *s);

/* ---- The words trace names are made of. Lower-case ASCII letters, at most 12 of
 * them, so that a name with a suffix always fits struct trace_name. */

extern const char *const names_adjectives[];
extern const size_t names_nadjectives;
extern const char *const names_nouns[];
extern const size_t names_nnouns;

#endif
