/* See claude_files.h.
 *
 * Whatever cannot be read is not there: a folder without rights, a team whose config.json is torn,
 * a name that is none. The next look has it. */
#include "ava/claude_files.h"

#include <ava.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"

void claude_names_add(const char *name, void *user)
{
	struct claude_names *all = user;

	if (all->n == all->max || !ARRAY_ROOM(all->v, all->cap, all->n + 1))
		return;
	if (all->cards) {
		all->n += card_agent(name, all->v[all->n]);
	} else if (card_is_name(name)) {
		snprintf(all->v[all->n++], sizeof(all->v[0]), "%s", name);
	}
}

bool claude_is_bare(const json_t *card)
{
	return strcmp(json_str(card, "status"), "active") == 0 && !json_object_get(card, "depth");
}

json_t *claude_cards(const char *folder, const char *session)
{
	struct claude_names names = {.cards = true, .max = CLAUDE_CARDS_MAX};
	char path[PATH_MAX + CARD_NAME_MAX + 2];
	json_t *cards = json_object();
	int dir;

	snprintf(path, sizeof(path), "%s/%s", folder, session);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return cards;
	(void)sys->list(dir, ".", claude_names_add, &names);
	for (size_t i = 0; i < names.n; i++) {
		json_t *card = card_read(dir, names.v[i]);

		if (card && claude_is_bare(card))
			card_add_meta(card);
		json_object_set_new(cards, names.v[i], card);
	}
	free(names.v);
	close(dir);
	return cards;
}

void claude_team(const char *home, const char *asked, char team[CARD_NAME_MAX + 1],
		 char leader[CARD_NAME_MAX + 1])
{
	struct claude_names names = {.max = 1000};
	char path[PATH_MAX + 2 * CARD_NAME_MAX], *text;
	int dir;

	team[0] = leader[0] = 0;
	snprintf(path, sizeof(path), "%s/teams", home);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	(void)sys->list(dir, ".", claude_names_add, &names);
	for (size_t i = 0; i < names.n && !team[0]; i++) {
		json_t *config = NULL;
		const char *lead;
		size_t len = 0;

		text = NULL;
		snprintf(path, sizeof(path), "%s/config.json", names.v[i]);
		if (sys_read_file(dir, path, CARD_MAX, &text, &len, NULL) == 0)
			config = json_parse(text, len, NULL);
		free(text);
		lead = json_str(config, "leadSessionId");
		if (card_is_name(lead) &&
		    (strcmp(asked, names.v[i]) == 0 || strcmp(asked, lead) == 0)) {
			memcpy(team, names.v[i], sizeof(names.v[0]));
			snprintf(leader, CARD_NAME_MAX + 1, "%s", lead);
		}
		json_decref(config);
	}
	free(names.v);
	close(dir);
}
