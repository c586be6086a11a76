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
#include <sys/file.h>
#include <sys/stat.h>
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
	char path[PATH_MAX + CARD_NAME_MAX + 2], file[CARD_NAME_MAX + 8];
	json_t *cards = json_object();
	size_t bytes = 0;
	struct stat st;
	int dir;

	snprintf(path, sizeof(path), "%s/%s", folder, session);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return cards;
	(void)sys->list(dir, ".", claude_names_add, &names);
	for (size_t i = 0; i < names.n && bytes < CLAUDE_BYTES_MAX; i++) {
		json_t *card = card_read(dir, names.v[i]);

		snprintf(file, sizeof(file), "%s.json", names.v[i]);
		if (card && fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (size_t)st.st_size;
		if (card && claude_is_bare(card))
			card_add_meta(card);
		json_object_set_new(cards, names.v[i], card);
	}
	free(names.v);
	close(dir);
	return cards;
}

/* ---- too many cards */

int claude_oldest_first(const void *a, const void *b)
{
	const struct claude_aged *x = a, *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	return strcmp(x->name, y->name); /* the kernel's clock for files goes in steps */
}

/* It has changed since it was read, or came later: it goes when that is in the log. */
static bool is_newer(const struct claude_full *f, int dir, const char *agent)
{
	json_t *card = card_read(dir, agent);
	const json_t *was = json_object_get(f->cards, agent);
	bool newer = card && strcmp(json_str(card, "updatedAt"), json_str(was, "updatedAt")) != 0;

	json_decref(card);
	return newer;
}

static void remove_oldest(struct claude_full *f, int dir, struct claude_aged *aged, size_t n)
{
	char file[CARD_NAME_MAX + 8];

	for (size_t i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s.json", aged[i].name);
		if (is_newer(f, dir, aged[i].name))
			f->again = true;
		else
			(void)unlinkat(dir, file, 0);
	}
}

void claude_cap(const char *folder, struct claude_full *f, size_t cap)
{
	struct claude_names names = {.cards = true, .max = 100000};
	char path[PATH_MAX + CARD_NAME_MAX + 2], file[CARD_NAME_MAX + 8];
	struct claude_aged *aged;
	struct stat st;
	int dir;

	snprintf(path, sizeof(path), "%s/%s", folder, f->session);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	/* A hook that is at a card ends first. */
	f->again = flock(dir, LOCK_EX | LOCK_NB) != 0;
	if (!f->again)
		(void)sys->list(dir, ".", claude_names_add, &names);
	aged = names.n > cap ? calloc(names.n, sizeof(*aged)) : NULL;
	for (size_t i = 0; aged && i < names.n; i++) {
		snprintf(file, sizeof(file), "%s.json", names.v[i]);
		memcpy(aged[i].name, names.v[i], sizeof(aged[i].name));
		if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
			aged[i].ms = st.st_mtim.tv_sec * 1000ll + st.st_mtim.tv_nsec / 1000000;
	}
	if (aged) {
		qsort(aged, names.n, sizeof(*aged), claude_oldest_first);
		remove_oldest(f, dir, aged, names.n - cap);
	}
	free(aged);
	free(names.v);
	close(dir); /* and with it the lock */
}

/* ---- teams */

static void take_team(struct claude_teams *t, int dir, const char *name)
{
	char path[CARD_NAME_MAX + 16], *text = NULL;
	json_t *config = NULL;
	const char *leader;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/config.json", name);
	if (sys_read_file(dir, path, CARD_MAX, &text, &len, NULL) == 0)
		config = json_parse(text, len, NULL);
	free(text);
	leader = json_str(config, "leadSessionId");
	if (card_is_name(leader) && ARRAY_ROOM(t->v, t->cap, t->n + 1)) {
		struct claude_team *team = &t->v[t->n++];

		snprintf(team->name, sizeof(team->name), "%s", name);
		snprintf(team->leader, sizeof(team->leader), "%s", leader);
	}
	json_decref(config);
}

void claude_teams_read(struct claude_teams *t, const char *home)
{
	struct claude_names names = {.max = 1000};
	char path[PATH_MAX + 16];
	int dir;

	*t = (struct claude_teams){0};
	snprintf(path, sizeof(path), "%s/teams", home);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	(void)sys->list(dir, ".", claude_names_add, &names);
	for (size_t i = 0; i < names.n; i++)
		take_team(t, dir, names.v[i]);
	free(names.v);
	close(dir);
}

const struct claude_team *claude_teams_find(const struct claude_teams *t, const char *asked)
{
	static const struct claude_team none;

	for (size_t i = 0; i < t->n; i++)
		if (strcmp(asked, t->v[i].name) == 0 || strcmp(asked, t->v[i].leader) == 0)
			return &t->v[i];
	return &none;
}

void claude_teams_fini(struct claude_teams *t)
{
	free(t->v);
}
