/* notify.exec of config.yaml, and its variable. */
#ifndef AVA_CONFIG_NOTIFY_H
#define AVA_CONFIG_NOTIFY_H

#include "ava/config.h"

struct ava_error;

/* Behind the words that are there; the buffer keeps an empty one at its end.
 * The first is the absolute path of a program. AVA_EINVAL. */
int config_notify_word(struct config *c, const char *word, struct ava_error *err);
/* AVA_NOTIFY_EXEC over what is there: a program without arguments; "" takes
 * away what the file says. AVA_EINVAL. */
int config_notify_environment(struct config *c, struct ava_error *err);

#endif
