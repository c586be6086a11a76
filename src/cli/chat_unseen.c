/* Notices; chat_unseen.h. Those behind the feed's beginning come by the feed.
 *
 * What can fail: the request, which an opening conversation tells; an
 * acknowledgement, which nobody has to know of. */
#include "cli/chat_unseen.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/api.h"
#include "cli/chat.h"
#include "cli/chat_show.h"
#include "cli/term.h"
#include "codec/json.h"

static void show_notice(struct chat *c, const json_t *item)
{
	const char *type = json_str(item, "type"), *text = json_str(item, "text");

	if (strcmp(type, "AssistantMessage") == 0) {
		speech_whole(&c->speech, stdout, text, strlen(text));
		speech_close(&c->speech);
		if (json_get_bool(item, "cut", false))
			chat_note("(cut: all of it stands in the conversation's file)");
	} else if (strcmp(type, "SpawnProposed") != 0) { /* what waits is shown by itself */
		term_str(stdout, json_str(item, "title"));
		putchar('\n');
	}
}

int chat_unseen(struct chat *c, bool *words, struct ava_error *err)
{
	json_t *unseen = NULL;
	const json_t *item;
	char path[128];
	size_t i;
	int rv;

	*words = false;
	snprintf(path, sizeof(path), "/sessions/%s/unseen?channel=terminal", c->session);
	rv = chat_call(c, path, NULL, &unseen, err);
	if (rv != 0)
		return rv;
	if (json_str(unseen, "summary")[0] != '\0') {
		term_colour(stdout, TERM_BOLD);
		term_str(stdout, json_str(unseen, "summary"));
		term_colour(stdout, TERM_PLAIN);
		putchar('\n');
	}
	json_array_foreach(json_object_get(unseen, "items"), i, item)
	{
		uint64_t lsn = (uint64_t)json_get_int(item, "lsn", 0);

		if (lsn > c->seen)
			continue;
		show_notice(c, item);
		chat_noticed(c, lsn);
		*words |= strcmp(json_str(item, "type"), "AssistantMessage") == 0;
	}
	json_decref(unseen);
	fflush(stdout);
	chat_acknowledge(c);
	return 0;
}

void chat_noticed(struct chat *c, unsigned long long lsn)
{
	c->noticed = MAX(c->noticed, (uint64_t)lsn);
}

void chat_acknowledge(struct chat *c)
{
	char path[128], body[96];
	json_t *answer = NULL;

	/* Nobody waits for it: no connection is made for its sake. */
	if (c->noticed <= c->acknowledged || c->lost || c->c == NULL)
		return;
	c->acknowledged = c->noticed;
	snprintf(path, sizeof(path), "/sessions/%s/ack", c->session);
	snprintf(body, sizeof(body), "{\"channel\":\"terminal\",\"lsn\":%llu}",
		 (unsigned long long)c->noticed);
	if (api_call(c->c, "POST", path, body, &answer, NULL, NULL) != 0) {
		client_close(c->c);
		c->c = NULL;
	}
	json_decref(answer);
}
