/* Folders of roles and the roles read from them. Each use looks at the folders: a file whose
 * inode, size or times have changed is read again, a removed one is forgotten, the others
 * stay as they are. So an edit is there with the next run, and a confirmed run keeps the
 * confirmed role, because it holds it.
 *
 * A bad file is an entry with a reason and takes nothing else down. An untrusted role of a
 * project hides no other: of one name the first usable role is used. Files are small, local,
 * a few hundred at the most, and read only when they changed.
 *
 * One lock, for several runtimes in one process. */
#include "subagent/rolebook.h"

#include <ava.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"

#define PLACES_MAX 32   /* most folders that are remembered */
#define DEPTH_MAX  4    /* most levels of folders inside folders */
#define NAMES_MAX  4096 /* most names in all of them, with other files */
#define PATH_MOST  4096
/* A file that changed so shortly before it was read may change again within the same
 * time stamp. */
#define SETTLED_MS 1000

struct role_file {
	struct list node;
	char *path;
	struct stat st;
	bool seen, unsettled;
	const struct role *role;
	char *why;
};

struct rolebook_place {
	struct list node;
	enum role_source source;
	char *path;
	struct list files; /* struct role_file, sorted by path */
	unsigned count;    /* files named *.md, those over the limit too */
	unsigned names;    /* names looked at */
	bool no_memory;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list places = {&places, &places}; /* folders by their last use, newest last */
static const struct role *builtin[16];
static char (*trusted)[HASH_HEX_LEN + 1];
static size_t ntrusted;

/* ---- files */

static void rolebook_file_free(struct role_file *f)
{
	list_del(&f->node);
	role_release(f->role);
	free(f->path);
	free(f->why);
	free(f);
}

static bool rolebook_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void see_file(struct rolebook_place *p, const char *path)
{
	struct role_file *f = NULL;
	struct ava_error err = {0};
	struct stat st;
	char *text = NULL;
	size_t len = 0;
	int rv = 0;

	if (stat(path, &st) != 0)
		return; /* the file is gone, or a link leads nowhere */
	LIST_EACH (&p->files, at, tmp) {
		f = LIST_ENTRY(at, struct role_file, node);
		if (strcmp(f->path, path) == 0)
			break;
		f = NULL;
	}
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			f->path = strdup(path);
		if (!f || !f->path) {
			free(f);
			p->no_memory = true;
			return;
		}
		list_add(&p->files, &f->node);
		f->st.st_ino = 0;
		f->unsettled = true;
	}
	f->seen = true;
	if (!f->unsettled && rolebook_same_file(&f->st, &st))
		return;
	f->st = st;
	role_release(f->role);
	free(f->why);
	f->role = NULL;
	f->why = NULL;
	f->unsettled = clock_wall_ms() - (int64_t)st.st_ctim.tv_sec * 1000 < SETTLED_MS;
	if (p->source != ROLE_PROJECT && (st.st_mode & S_IWOTH) != 0)
		rv = err_set(&err, AVA_EDENIED, "%s: anybody may write it: chmod o-w it", f->path);
	if (rv == 0)
		rv = sys_read_file(AT_FDCWD, f->path, ROLE_FILE_MAX, &text, &len, &err);
	if (rv == 0)
		rv = role_read(&f->role, f->path, text, len, p->source, &err);
	free(text);
	if (rv != 0)
		f->why = strdup(err.text);
	p->no_memory |= rv == AVA_ENOMEM || (rv != 0 && !f->why);
}

/* *.md of a folder and those in it, in the order of their names. */
static void walk(struct rolebook_place *p, const char *path, unsigned depth)
{
	struct dirent **names = NULL;
	int n = scandir(path, &names, NULL, alphasort);

	p->no_memory |= n < 0 && errno == ENOMEM;
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		size_t len = strlen(name);
		char full[PATH_MOST];
		bool looked = name[0] != '.' && p->names++ < NAMES_MAX &&
			      snprintf(full, sizeof(full), "%s/%s", path, name) < (int)sizeof(full);

		if (looked && names[i]->d_type == DT_DIR && depth < DEPTH_MAX)
			walk(p, full, depth + 1);
		else if (looked && len > 3 && strcmp(name + len - 3, ".md") == 0 &&
			 p->count++ < ROLE_FILES_MAX)
			see_file(p, full);
		free(names[i]);
	}
	free(names);
}

static void refresh(struct rolebook_place *p)
{
	LIST_EACH (&p->files, at, tmp)
		LIST_ENTRY(at, struct role_file, node)->seen = false;
	p->count = p->names = 0;
	p->no_memory = false;
	walk(p, p->path, 0);
	LIST_EACH (&p->files, at, tmp) {
		struct role_file *f = LIST_ENTRY(at, struct role_file, node);

		if (!f->seen)
			rolebook_file_free(f);
	}
}

/* ---- folders */

static struct rolebook_place *place_new(const char *path, enum role_source source)
{
	struct rolebook_place *p = calloc(1, sizeof(*p));

	if (p)
		p->path = strdup(path);
	if (!p || !p->path) {
		free(p);
		return NULL;
	}
	list_init(&p->node);
	list_init(&p->files);
	p->source = source;
	return p;
}

static void place_free(struct rolebook_place *p)
{
	LIST_EACH (&p->files, at, tmp)
		rolebook_file_free(LIST_ENTRY(at, struct role_file, node));
	list_del(&p->node);
	free(p->path);
	free(p);
}

/* The folder at `path`, brought up to date. NULL: no memory. */
static struct rolebook_place *rolebook_place_at(const char *path, enum role_source source)
{
	struct rolebook_place *p = NULL;
	unsigned n = 0;

	LIST_EACH (&places, at, tmp) {
		struct rolebook_place *q = LIST_ENTRY(at, struct rolebook_place, node);

		n++;
		if (q->source == source && strcmp(q->path, path) == 0)
			p = q;
	}
	if (!p && n >= PLACES_MAX)
		place_free(LIST_FIRST(&places, struct rolebook_place, node));
	if (!p)
		p = place_new(path, source);
	if (!p)
		return NULL;
	list_del(&p->node);
	list_add(&places, &p->node);
	refresh(p);
	return p;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The nearest .claude/agents at `cwd` or above it, up to the root of the repository; the
 * home folder is no project. */
static bool project_folder(const char *cwd, char out[PATH_MOST])
{
	const char *home = getenv("HOME");
	char at[PATH_MOST - 32], git[PATH_MOST];
	struct stat st;

	if (!cwd || cwd[0] != '/' || snprintf(at, sizeof(at), "%s", cwd) >= (int)sizeof(at))
		return false;
	for (;;) {
		char *slash = strrchr(at, '/');

		if (home && strcmp(at, home) == 0)
			return false;
		snprintf(out, PATH_MOST, "%s/.claude/agents", at);
		if (is_folder(out))
			return true;
		snprintf(git, sizeof(git), "%s/.git", at);
		if (stat(git, &st) == 0 || slash == at || !slash)
			return false;
		*slash = '\0';
	}
}

static bool place_path(enum role_source source, const char *cwd, char out[PATH_MOST])
{
	const char *home = getenv("HOME");

	if (source == ROLE_PROJECT)
		return project_folder(cwd, out);
	if (source == ROLE_USER)
		return settings_config_path("agents", out, PATH_MOST, NULL) == 0;
	return home && home[0] == '/' &&
	       snprintf(out, PATH_MOST, "%s/.claude/agents", home) < PATH_MOST;
}

/* ---- the list */

static struct role_entry *entry_add(struct role_list *l)
{
	if (!ARRAY_ROOM(l->items, l->cap, l->n + 1))
		return NULL;
	l->items[l->n] = (struct role_entry){0};
	return &l->items[l->n++];
}

void role_list_free(struct role_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		role_release(l->items[i].role);
		free(l->items[i].path);
		free(l->items[i].why);
	}
	free(l->items);
	*l = (struct role_list){0};
}

static bool is_trusted(const char *hash)
{
	for (size_t i = 0; i < ntrusted; i++)
		if (strcmp(trusted[i], hash) == 0)
			return true;
	return false;
}

static const struct role_entry *rolebook_named(const struct role_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->items[i].why && role_name_is(l->items[i].role, name))
			return &l->items[i];
	return NULL;
}

static int rolebook_add_file(struct role_list *l, const struct rolebook_place *p,
			     const struct role_file *f)
{
	const struct role_entry *first = f->role ? rolebook_named(l, f->role->name) : NULL;
	struct role_entry *e;
	char why[PATH_MOST + 200] = ""; /* why a readable role is not used, too; "": it is */
	bool trust = f->role && (p->source != ROLE_PROJECT || is_trusted(f->role->hash));

	if (!f->role)
		snprintf(why, sizeof(why), "%s", f->why ? f->why : "");
	else if (first)
		snprintf(why, sizeof(why), "%s: the role %s of %s comes before it", f->path,
			 f->role->name, first->path[0] ? first->path : "ava");
	else if (!trust)
		snprintf(why, sizeof(why),
			 "the project's role %s is not trusted: read it, then: ava roles trust %s",
			 f->role->name, f->path);
	e = entry_add(l);
	if (!e)
		return AVA_ENOMEM;
	e->path = strdup(f->path);
	e->why = why[0] || !f->role ? strdup(why) : NULL;
	e->source = p->source;
	e->trusted = trust;
	if (f->role)
		e->role = role_hold(f->role);
	return e->path && (e->why || !why[0]) ? 0 : AVA_ENOMEM;
}

/* The built-in ones, read when the first role is asked for. */
static int load_builtin(void)
{
	int rv = 0;

	for (size_t i = 0; rv == 0 && builtin_roles[i].path; i++) {
		const struct embedded *f = &builtin_roles[i];

		assert(i < ARRAY_LEN(builtin));
		if (!builtin[i])
			rv = role_read(&builtin[i], f->path, f->text, f->len, ROLE_BUILTIN, NULL);
		assert(rv == 0 || rv == AVA_ENOMEM); /* a test reads all built-in roles */
	}
	return rv;
}

static int add_builtin(struct role_list *l)
{
	int rv = load_builtin();

	for (size_t i = 0; rv == 0 && builtin_roles[i].path; i++) {
		struct role_entry *e = entry_add(l);

		if (!e)
			return AVA_ENOMEM;
		e->role = role_hold(builtin[i]);
		e->path = strdup("");
		e->trusted = true;
		if (!e->path)
			return AVA_ENOMEM;
	}
	return rv;
}

/* An entry that says that the folder is over the limits. */
static int rolebook_add_rest(struct role_list *l, const struct rolebook_place *p)
{
	char why[PATH_MOST + 100];
	struct role_entry *e = entry_add(l);

	if (!e)
		return AVA_ENOMEM;
	snprintf(why, sizeof(why),
		 "%s: there is more than the %u role files and %d names that are looked at: move "
		 "the rest away",
		 p->path, ROLE_FILES_MAX, NAMES_MAX);
	e->source = p->source;
	e->path = strdup(p->path);
	e->why = strdup(why);
	return e->path && e->why ? 0 : AVA_ENOMEM;
}

static int add_place(struct role_list *l, const struct rolebook_place *p)
{
	int rv = p->no_memory ? AVA_ENOMEM : 0;

	LIST_EACH (&p->files, at, tmp)
		if (rv == 0)
			rv = rolebook_add_file(l, p, LIST_ENTRY(at, struct role_file, node));
	if (rv == 0 && (p->count > ROLE_FILES_MAX || p->names > NAMES_MAX))
		rv = rolebook_add_rest(l, p);
	return rv;
}

int roles_list(const char *cwd, struct role_list *out)
{
	char path[PATH_MOST];
	int rv;

	*out = (struct role_list){0};
	pthread_mutex_lock(&lock);
	rv = add_builtin(out);
	for (int s = ROLE_PROJECT; rv == 0 && s <= ROLE_CLAUDE; s++) {
		struct rolebook_place *p;

		if (!place_path((enum role_source)s, cwd, path) || !is_folder(path))
			continue;
		p = rolebook_place_at(path, (enum role_source)s);
		rv = p ? add_place(out, p) : AVA_ENOMEM;
	}
	pthread_mutex_unlock(&lock);
	if (rv != 0)
		role_list_free(out);
	return rv;
}

int roles_look(const char *path, struct role_list *out, struct ava_error *err)
{
	struct rolebook_place *p;
	struct stat st;
	int rv;

	*out = (struct role_list){0};
	if (stat(path, &st) != 0)
		return err_sys(err, "%.500s", path);
	p = place_new(path, ROLE_PROJECT);
	if (!p)
		return err_set(err, AVA_ENOMEM, "out of memory");
	pthread_mutex_lock(&lock);
	if (S_ISDIR(st.st_mode))
		refresh(p);
	else
		see_file(p, path);
	rv = add_place(out, p);
	place_free(p);
	pthread_mutex_unlock(&lock);
	if (rv == 0)
		return 0;
	role_list_free(out);
	return err_set(err, rv, "out of memory");
}

const struct role *role_find(const char *name, const char *cwd, struct ava_error *err)
{
	const struct role_entry *e = NULL;
	const struct role *role = NULL;
	struct role_list all;
	char own[PATH_MOST] = "";
	struct buf names;
	size_t n = 0, left, broken = 0;

	if (roles_list(cwd, &all) != 0) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	e = rolebook_named(&all, name);
	if (e)
		role = role_hold(e->role);
	for (size_t i = 0; !e && i < all.n; i++)
		if (all.items[i].role && role_name_is(all.items[i].role, name)) {
			e = &all.items[i];
			err_set(err, AVA_EDENIED, "%s", e->why);
		}
	if (!e) {
		buf_init(&names, 1u << 16);
		for (size_t i = 0; i < all.n; i++) {
			n += all.items[i].why == NULL;
			broken += all.items[i].role == NULL;
		}
		left = n;
		for (size_t i = 0; i < all.n; i++) /* "there are a, b and c" */
			if (!all.items[i].why) {
				left--;
				buf_addf(&names, "%s%s",
					 left + 1 == n ? ""
					 : left        ? ", "
						       : " and ",
					 all.items[i].role->name);
			}
		if (broken > 0)
			buf_addf(&names, "; %zu role file%s cannot be read: ava roles check",
				 broken, broken == 1 ? "" : "s");
		(void)settings_config_path("agents/<name>.md", own, sizeof(own), NULL);
		err_set(err, AVA_EINVAL,
			"unknown role %.60s: there are %.300s; one of your own is a file: %.200s "
			"(doc/ROLES.md)",
			name, names.data ? names.data : "none", own);
		buf_fini(&names);
	}
	role_list_free(&all);
	return role;
}

/* "reviewer" is the built-in code_reviewer. */
static bool is_called(const struct role *r, const char *word)
{
	const char *last = r->source == ROLE_BUILTIN ? strrchr(r->name, '_') : NULL;

	return role_name_is(r, word) || (last && strcmp(word, last + 1) == 0);
}

bool role_word(const char *word, char out[ROLE_NAME_MAX + 1])
{
	const struct role *found = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; load_builtin() == 0 && builtin_roles[i].path; i++)
		if (is_called(builtin[i], word))
			found = builtin[i];
	LIST_EACH (&places, at, tmp) {
		struct rolebook_place *p = LIST_ENTRY(at, struct rolebook_place, node);

		LIST_EACH (&p->files, each, next) {
			struct role_file *f = LIST_ENTRY(each, struct role_file, node);

			if (!found && f->role && is_called(f->role, word))
				found = f->role;
		}
	}
	if (found)
		snprintf(out, ROLE_NAME_MAX + 1, "%s", found->name);
	pthread_mutex_unlock(&lock);
	return found != NULL;
}

const struct role *role_of_config(const json_t *config)
{
	const char *name = json_str(config, "role");
	const struct role *like = NULL, *role;
	int rv;

	pthread_mutex_lock(&lock);
	rv = load_builtin();
	for (size_t i = 0; rv == 0 && builtin_roles[i].path; i++)
		if (strcmp(builtin[i]->name, name) == 0)
			like = builtin[i];
	role = rv == 0 ? role_restore(config, like) : NULL;
	pthread_mutex_unlock(&lock);
	return role;
}

/* ---- trust */

bool roles_trusted(const char *hash)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = is_trusted(hash);
	pthread_mutex_unlock(&lock);
	return is;
}

int roles_trust(const char *hash)
{
	int rv = 0;
	void *more;

	if (strlen(hash) != HASH_HEX_LEN || strspn(hash, "0123456789abcdef") != HASH_HEX_LEN)
		return AVA_EINVAL;
	pthread_mutex_lock(&lock);
	if (!is_trusted(hash)) {
		more = ntrusted < ROLE_TRUSTS_MAX
			       ? realloc(trusted, (ntrusted + 1) * sizeof(*trusted))
			       : NULL;
		rv = more ? 0 : ntrusted == ROLE_TRUSTS_MAX ? AVA_ETOOBIG : AVA_ENOMEM;
		if (more) {
			trusted = more;
			memcpy(trusted[ntrusted++], hash, HASH_HEX_LEN + 1);
		}
	}
	pthread_mutex_unlock(&lock);
	return rv;
}
