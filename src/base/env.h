/* The environment as this program sees it: the process' own, or, in a host program that embeds
 * us, only the strings it gave. One thread. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

struct ava_error;

/* As getenv; NULL: unset. */
const char *env_get(const char *name);
/* From now on only "NAME=value" strings of this list count (*copied*; NULL at
 * its end; NULL for none at all). AVA_EINVAL: a string has no "="; AVA_ENOMEM. */
int env_only(const char *const *list, struct ava_error *err);
/* Return to the process' environment; the copied list is wiped. */
void env_process(void);

#endif
