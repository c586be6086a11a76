/* Folders of roles and skills, and what was read from them. Each use looks at the folders: what
 * the kernel says has changed (skill_stamp) is read again, the rest stays as it is. A confirmed run
 * keeps what was confirmed, because a list holds it.
 *
 * A bad file is an entry with a reason and takes nothing else down. What is not trusted hides no
 * other: of one name the first that can be used is used. Files are small, local, a few hundred at
 * the most, and read only when they changed.
 *
 * One lock, for several runtimes in one process. Failures: memory. */
#include "subagent/book.h"

#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/settings.h"
#include "base/strmap.h"
#include "base/util.h"
#include "codec/utf8.h"
#include "tool/skill.h"

#define DEPTH_MAX 4    /* most levels of folders inside folders */
#define NAMES_MAX 4096 /* most names in all of them, with other files */
#define KEPT_MAX  1024 /* items that are remembered */
#define PATH_MOST 4096
#define UPS_MAX   16

struct book_item {
	struct list node; /* in `kept` */
	const struct book *book;
	enum role_source source;
	unsigned users; /* lists, and `kept` */
	bool looked;    /* nobody has listed it yet */
	bool settled;   /* it did not change so shortly before that it may have the same stamp again
			 */
	uint64_t stamp;
	const void *it; /* NULL: it cannot be read */
	char *why;      /* why not */
	char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list kept = {&kept, &kept}; /* by their last use, the newest last */
static struct strmap kept_by_path;
static char (*trusted)[HASH_HEX_LEN + 1];
static size_t ntrusted;

/* ---- what was read before */

static struct book_item *item_new(const struct book *b, enum role_source source, const char *path)
{
	size_t len = strlen(path) + 1;
	struct book_item *i = calloc(1, sizeof(*i) + len);

	if (!i)
		return NULL;
	list_init(&i->node);
	i->book = b;
	i->source = source;
	i->users = 1;
	memcpy(i->path, path, len);
	return i;
}

static void item_release(struct book_item *i)
{
	if (!i || --i->users > 0)
		return;
	if (i->it)
		i->book->drop(i->it);
	free(i->why);
	free(i);
}

static void item_forget(struct book_item *i)
{
	if (list_empty(&i->node))
		return;
	strmap_del(&kept_by_path, i->path);
	list_del(&i->node);
	item_release(i);
}

static void item_keep(struct book_item *i)
{
	if (strmap_put(&kept_by_path, i->path, i) != 0)
		return; /* it is read again */
	i->users++;
	list_add(&kept, &i->node);
	if (kept_by_path.count > KEPT_MAX)
		item_forget(LIST_FIRST(&kept, struct book_item, node));
}

/* What lies at `path`; a new reference. NULL: no memory. */
static struct book_item *item_at(const struct book *b, enum role_source source, const char *path)
{
	struct book_item *i = strmap_get(&kept_by_path, path);
	struct ava_error err = {0};
	uint64_t stamp = 0;
	bool settled = false;
	int rv = skill_stamp(path, &stamp, &settled, &err);

	if (rv == 0 && i && i->settled && i->stamp == stamp && i->book == b &&
	    i->source == source) {
		list_del(&i->node);
		list_add(&kept, &i->node);
		i->users++;
		return i;
	}
	if (i)
		item_forget(i);
	i = item_new(b, source, path);
	if (!i)
		return NULL;
	i->stamp = stamp;
	i->settled = settled;
	rv = rv ? err_wrap(&err, rv, "%s", path) : b->read(path, source, &i->it, &err);
	i->why = rv == 0 ? NULL : strdup(err.text);
	if (rv == AVA_ENOMEM || (rv != 0 && !i->why)) {
		item_release(i);
		return NULL;
	}
	i->looked = true;
	item_keep(i);
	return i;
}

/* ---- the list */

void book_list_free(struct book_list *l)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < l->n; i++) {
		item_release(l->items[i].item);
		free(l->items[i].why);
	}
	pthread_mutex_unlock(&lock);
	free(l->items);
	*l = (struct book_list){0};
}

static bool is_trusted(const char *hash)
{
	for (size_t i = 0; i < ntrusted; i++)
		if (strcmp(trusted[i], hash) == 0)
			return true;
	return false;
}

static const char *item_name(const struct book *b, const void *it)
{
	return *(const char *const *)((const char *)it + b->name);
}

static bool item_trusted(const struct book *b, enum role_source source, const void *it)
{
	return source != ROLE_PROJECT || is_trusted((const char *)it + b->hash);
}

const struct book_entry *book_find(const struct book_list *l, const char *name)
{
	const struct book_entry *found = NULL;

	for (size_t i = 0; i < l->n; i++) {
		const struct book_entry *e = &l->items[i];

		if (e->it && l->book->is(e->it, name) && (!found || (found->why && !e->why)))
			found = e;
	}
	return found;
}

/* Why one that can be read is not used; an empty text: it is. */
static void book_judge(const struct book_list *l, const struct book_entry *e, char *why,
		       size_t size)
{
	const struct book *b = l->book;
	const char *name = item_name(b, e->it);
	const struct book_entry *first = book_find(l, name);
	struct stat st;

	if (e->source != ROLE_PROJECT && (stat(e->path, &st) != 0 || (st.st_mode & S_IWOTH) != 0))
		snprintf(why, size, "%s: anybody may write it: chmod o-w it", e->path);
	else if (first && !first->why)
		snprintf(why, size, "%s: the %s %s of %s comes before it", e->path, b->one, name,
			 first->path[0] ? first->path : "ava");
	else if (!e->trusted)
		snprintf(why, size,
			 "the project's %s %s is not trusted: read it, then: ava %s trust %s",
			 b->one, name, b->all, e->path);
}

/* Adds what was read (*taken*; NULL: no memory), with `said` of why it is none. */
static int book_put(struct book_list *l, struct book_item *i, const char *said, bool listed)
{
	char why[2 * PATH_MOST + 200] = "";
	struct book_entry e;

	if (!i || !ARRAY_ROOM(l->items, l->cap, l->n + 1)) {
		item_release(i);
		return AVA_ENOMEM;
	}
	i->looked = i->looked && !listed;
	e = (struct book_entry){.it = i->it, .path = i->path, .source = i->source, .item = i};
	e.trusted = i->it && item_trusted(l->book, i->source, i->it);
	if (i->it)
		book_judge(l, &e, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "%s", said ? said : i->why);
	if (why[0] && !(e.why = strdup(why))) {
		item_release(i);
		return AVA_ENOMEM;
	}
	l->items[l->n++] = e;
	return 0;
}

struct book_walk {
	struct book_list *l;
	enum role_source source;
	bool listed;
	unsigned names, items;
	int rv;
};

/* What a folder and those in it have, in the order of their names. */
static void book_walk(struct book_walk *w, const char *path, unsigned depth)
{
	const struct book *b = w->l->book;
	struct dirent **names = NULL;
	int n = scandir(path, &names, NULL, alphasort);
	char full[PATH_MOST];

	if (n < 0 && errno == ENOMEM)
		w->rv = AVA_ENOMEM;
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		unsigned char type = names[i]->d_type;
		bool looked = w->rv == 0 && name[0] != '.' && utf8_valid(name, strlen(name)) &&
			      w->names++ < NAMES_MAX &&
			      snprintf(full, sizeof(full), "%s/%s", path, name) < (int)sizeof(full);

		if (looked && b->deep && type == DT_DIR && depth < DEPTH_MAX)
			book_walk(w, full, depth + 1);
		else if (looked && b->takes(full, type) && w->items++ < BOOK_ITEMS_MAX)
			w->rv = book_put(w->l, item_at(b, w->source, full), NULL, w->listed);
		free(names[i]);
	}
	free(names);
}

static int book_place(struct book_list *l, const char *path, enum role_source source, bool listed)
{
	struct book_walk w = {.l = l, .source = source, .listed = listed};
	char why[PATH_MOST + 100];

	book_walk(&w, path, 0);
	if (w.rv != 0 || (w.items <= BOOK_ITEMS_MAX && w.names <= NAMES_MAX))
		return w.rv;
	snprintf(why, sizeof(why),
		 "%s: there is more than the %u %s and %d names that are looked at: move the rest "
		 "away",
		 path, BOOK_ITEMS_MAX, l->book->files, NAMES_MAX);
	return book_put(l, item_new(l->book, source, path), why, listed);
}

/* ---- folders */

/* Cuts the last part of the path off; false: it has no other. */
static bool cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

static bool is_repository(const char *at)
{
	char git[PATH_MOST + 8];

	snprintf(git, sizeof(git), "%s/.git", at);
	return access(git, F_OK) == 0;
}

static bool is_home(const char *at)
{
	const char *home = getenv("HOME");

	return home && strcmp(at, home) == 0;
}

/* The levels from `cwd` up to the root of its repository, else below the home folder or to the root
 * of all. */
static unsigned book_climb(const char *cwd, bool *repository)
{
	char at[PATH_MOST];
	unsigned n = 0;

	*repository = false;
	snprintf(at, sizeof(at), "%s", cwd);
	while (!is_home(at) && !(*repository = is_repository(at)) && cut_last(at))
		n++;
	return n;
}

unsigned book_ups(const char *cwd)
{
	bool repository;
	unsigned n = book_climb(cwd, &repository);

	return repository && n < UPS_MAX ? n : 0;
}

/* The nearest folder of this name at `cwd` or so many levels above it. */
static bool book_project(const char *cwd, unsigned ups, const char *name, char out[PATH_MOST])
{
	char at[PATH_MOST - 32];
	struct stat st;

	if (cwd[0] != '/' || snprintf(at, sizeof(at), "%s", cwd) >= (int)sizeof(at))
		return false;
	do {
		if (is_home(at))
			return false;
		snprintf(out, PATH_MOST, "%s/%s", at, name);
		if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
			return true;
	} while (ups-- > 0 && cut_last(at));
	return false;
}

static int book_places(struct book_list *l, const char *cwd)
{
	const struct book *b = l->book;
	const char *home = getenv("HOME");
	bool repository;
	unsigned ups = b->climbs ? book_climb(cwd, &repository) : book_ups(cwd);
	char path[PATH_MOST];
	int rv = b->first ? b->first(l) : 0;

	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(b->project) && b->project[i]; i++)
		if (book_project(cwd, ups, b->project[i], path))
			rv = book_place(l, path, ROLE_PROJECT, true);
	if (rv == 0 && settings_config_path(b->user, path, sizeof(path), NULL) == 0)
		rv = book_place(l, path, ROLE_USER, true);
	if (rv == 0 && home && home[0] == '/' &&
	    snprintf(path, sizeof(path), "%s/%s", home, b->claude) < (int)sizeof(path))
		rv = book_place(l, path, ROLE_CLAUDE, true);
	return rv;
}

int book_list(const struct book *b, const char *cwd, struct book_list *out)
{
	int rv;

	*out = (struct book_list){.book = b};
	pthread_mutex_lock(&lock);
	rv = book_places(out, cwd ? cwd : "");
	pthread_mutex_unlock(&lock);
	if (rv != 0)
		book_list_free(out);
	return rv;
}

int book_look(const struct book *b, const char *path, struct book_list *out, struct ava_error *err)
{
	struct stat st;
	int rv;

	*out = (struct book_list){.book = b};
	if (stat(path, &st) != 0)
		return err_sys(err, "%.500s", path);
	pthread_mutex_lock(&lock);
	if (!S_ISDIR(st.st_mode) || b->takes(path, DT_DIR))
		rv = book_put(out, item_at(b, ROLE_PROJECT, path), NULL, false);
	else
		rv = book_place(out, path, ROLE_PROJECT, false);
	pthread_mutex_unlock(&lock);
	if (rv == 0)
		return 0;
	book_list_free(out);
	return err_set(err, rv, "out of memory");
}

bool book_recall(const struct book *b, bool (*fits)(const void *it, const char *word),
		 const char *word, char *out, size_t size)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	LIST_EACH (&kept, at, tmp) {
		const struct book_item *i = LIST_ENTRY(at, struct book_item, node);

		if (found || i->book != b || !i->it || i->looked || !fits(i->it, word) ||
		    !item_trusted(b, i->source, i->it) || access(i->path, F_OK) != 0)
			continue;
		snprintf(out, size, "%s", item_name(b, i->it));
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- trust */

int book_trust(const char *hash)
{
	int rv = 0;
	void *more;

	if (strlen(hash) != HASH_HEX_LEN || strspn(hash, "0123456789abcdef") != HASH_HEX_LEN)
		return AVA_EINVAL;
	pthread_mutex_lock(&lock);
	if (!is_trusted(hash)) {
		more = ntrusted < BOOK_TRUSTS_MAX
			       ? realloc(trusted, (ntrusted + 1) * sizeof(*trusted))
			       : NULL;
		rv = more ? 0 : ntrusted == BOOK_TRUSTS_MAX ? AVA_ETOOBIG : AVA_ENOMEM;
		if (more) {
			trusted = more;
			memcpy(trusted[ntrusted++], hash, HASH_HEX_LEN + 1);
		}
	}
	pthread_mutex_unlock(&lock);
	return rv;
}
