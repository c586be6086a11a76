/* Roles: the built-in ones, and those of a person's folders (book.h).
 *
 * A confirmed run keeps the confirmed role, because it holds it. One lock, for several runtimes in
 * one process. Failures: memory. */
#include "subagent/rolebook.h"

#include <ava.h>
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `builtin` */
static const struct role *builtin[16];

/* The built-in ones, read when the first role is asked for. */
static int load_builtin(void)
{
	int rv = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; rv == 0 && builtin_roles[i].path; i++) {
		const struct embedded *f = &builtin_roles[i];

		assert(i < ARRAY_LEN(builtin));
		if (!builtin[i])
			rv = role_read(&builtin[i], f->path, f->text, f->len, ROLE_BUILTIN, NULL);
		assert(rv == 0 || rv == AVA_ENOMEM); /* a test reads all built-in roles */
	}
	pthread_mutex_unlock(&lock);
	return rv;
}

static int add_builtin(struct book_list *l)
{
	int rv = load_builtin();

	for (size_t i = 0; rv == 0 && builtin_roles[i].path; i++) {
		if (!ARRAY_ROOM(l->items, l->cap, l->n + 1))
			return AVA_ENOMEM;
		l->items[l->n++] =
			(struct book_entry){.role = builtin[i], .path = "", .trusted = true};
	}
	return rv;
}

/* ---- the book */

static bool role_takes(const char *path, unsigned char type)
{
	size_t len = strlen(path);

	return type != DT_DIR && strcmp(path + len - 3, ".md") == 0 && access(path, F_OK) == 0;
}

static int role_from(const char *path, enum role_source source, const void **it,
		     struct ava_error *err)
{
	const struct role *r = NULL;
	char *text = NULL;
	size_t len = 0;
	int rv = sys_read_file(AT_FDCWD, path, ROLE_FILE_MAX, &text, &len, err);

	if (rv == 0)
		rv = role_read(&r, path, text, len, source, err);
	*it = r;
	free(text);
	return rv;
}

static bool role_is(const void *it, const char *name)
{
	return role_name_is(it, name);
}

static void role_drop(const void *it)
{
	role_release(it);
}

const struct book book_of_roles = {
	.one = "role",
	.all = "roles",
	.files = "role files",
	.project = {".claude/agents"},
	.user = "agents",
	.claude = ".claude/agents",
	.deep = true,
	.climbs = true,
	.name = offsetof(struct role, name),
	.hash = offsetof(struct role, hash),
	.takes = role_takes,
	.read = role_from,
	.is = role_is,
	.drop = role_drop,
	.first = add_builtin,
};

/* ---- the roles of words */

const struct role *role_find(const char *name, const char *cwd, struct ava_error *err)
{
	const struct book_entry *e;
	const struct role *role = NULL;
	struct book_list all;
	char own[4096] = "";
	struct buf names;
	size_t n = 0, left, broken = 0;

	if (book_list(&book_of_roles, cwd, &all) != 0) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	e = book_find(&all, name);
	if (e && e->why)
		err_set(err, AVA_EDENIED, "%s", e->why);
	else if (e)
		role = role_hold(e->role);
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
	book_list_free(&all);
	return role;
}

/* "reviewer" is the built-in code_reviewer. */
static bool is_called(const void *it, const char *word)
{
	const struct role *r = it;
	const char *last = r->source == ROLE_BUILTIN ? strrchr(r->name, '_') : NULL;

	return role_name_is(r, word) || (last && strcmp(word, last + 1) == 0);
}

bool role_word(const char *word, char out[ROLE_NAME_MAX + 1])
{
	for (size_t i = 0; load_builtin() == 0 && builtin_roles[i].path; i++)
		if (is_called(builtin[i], word)) {
			snprintf(out, ROLE_NAME_MAX + 1, "%s", builtin[i]->name);
			return true;
		}
	return book_recall(&book_of_roles, is_called, word, out, ROLE_NAME_MAX + 1);
}

const struct role *role_of_config(const json_t *config)
{
	const char *name = json_str(config, "role");
	const struct role *like = NULL;

	if (load_builtin() != 0)
		return NULL;
	for (size_t i = 0; builtin_roles[i].path; i++)
		if (strcmp(builtin[i]->name, name) == 0)
			like = builtin[i];
	return role_restore(config, like);
}
