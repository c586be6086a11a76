/* The words of notify.exec, one behind another in one buffer. What can fail: a
 * command that is not the path of a program, or too long; the sentence says
 * which. Whether the program is there is seen when it is called: it may come
 * later. */
#include "ava/config_notify.h"

#include <string.h>

#include "base/env.h"
#include "base/error.h"

int config_notify_word(struct config *c, const char *word, struct ava_error *err)
{
	size_t used = 0, n = 0, len = strlen(word) + 1;

	for (; c->notify[used]; n++)
		used += strlen(c->notify + used) + 1;
	if (n == 0 && word[0] != '/')
		return err_set(
			err, AVA_EINVAL,
			"notify.exec is \"%.80s\"; it must be the absolute path of a program",
			word);
	if (len == 1)
		return err_set(err, AVA_EINVAL, "notify.exec has an empty word");
	if (n == CONFIG_NOTIFY_WORDS || used + len + 1 > sizeof(c->notify))
		return err_set(err, AVA_EINVAL,
			       "notify.exec is too long: %d words, %d bytes at the most",
			       CONFIG_NOTIFY_WORDS, CONFIG_NOTIFY_BYTES - 1);
	memcpy(c->notify + used, word, len);
	return 0;
}

int config_notify_environment(struct config *c, struct ava_error *err)
{
	const char *path = env_get("AVA_NOTIFY_EXEC");
	int rv;

	if (!path)
		return 0;
	memset(c->notify, 0, sizeof(c->notify));
	rv = *path ? config_notify_word(c, path, err) : 0;
	return rv == 0 ? 0 : err_wrap(err, rv, "AVA_NOTIFY_EXEC");
}
