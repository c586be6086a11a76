/* The offline model as Ava: which role a request is for, what a status says,
 * what a subagent found. A function of the request body, like the rest. */
#ifndef PROVIDER_OFFLINE_TALK_H
#define PROVIDER_OFFLINE_TALK_H

#include <stdbool.h>
#include <stddef.h>

struct draft;
struct ava_error;

/* Does the request offer spawn_subagent: is it a turn of Ava's? */
bool offline_is_talk(const char *body, size_t len);
/* Fill `draft` (not started) with her next turn. 0, AVA_EINVAL, AVA_ENOMEM. */
int offline_talk(const char *body, size_t len, struct draft *draft, struct ava_error *err);

#endif
