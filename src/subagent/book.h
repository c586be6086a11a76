/* Books: the kinds of Markdown files with front matter that a person keeps in folders, roles and
 * skills. Which of them can be seen depends on the working folder, because a project brings its
 * own; a project's is used only when a person has trusted its bytes. Each use looks at the folders:
 * an edit is there with the next run, and what a list holds stays as it was read. */
#ifndef SUBAGENT_BOOK_H
#define SUBAGENT_BOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "subagent/role.h"

struct ava_error;
struct skill;

#define BOOK_ITEMS_MAX  256u  /* of a folder and the folders in it */
#define BOOK_TRUSTS_MAX 1024u /* trusted hashes */

struct book_entry {
	union { /* NULL: it cannot be read */
		const void *it;
		const struct role *role;
		const struct skill *skill;
	};
	const char *path; /* "": built in */
	char *why;        /* why it cannot be read, or is not used; NULL: it is; owned */
	enum role_source source;
	bool trusted;
	struct book_item *item;
};

struct book_list {
	const struct book *book;
	struct book_entry *items;
	size_t n, cap;
};

struct book {
	const char *one, *all, *files; /* "role", "roles", "role files" */
	const char *project[3], *user,
		*claude;   /* folders: of a project, of the configuration, of ~ */
	bool deep;         /* in folders inside folders, too */
	bool climbs;       /* a project's are looked for above `cwd` outside of a repository, too */
	size_t name, hash; /* where a text and an array of characters stand in what is read */
	/* Is what lies at `path` one? `type` as of readdir. */
	bool (*takes)(const char *path, unsigned char type);
	int (*read)(const char *path, enum role_source source, const void **it,
		    struct ava_error *err);
	bool (*is)(const void *it, const char *name);
	void (*drop)(const void *it);      /* a reference of `read` */
	int (*first)(struct book_list *l); /* adds those of no folder; NULL: there are none */
};

/* All that can be seen from `cwd` ("": no project), in order of precedence: built-in, project,
 * user, claude. AVA_ENOMEM. */
int book_list(const struct book *b, const char *cwd, struct book_list *out);
/* What the file or folder at `path` has, read as a project's. AVA_ENOENT, AVA_ENOMEM. */
int book_look(const struct book *b, const char *path, struct book_list *out, struct ava_error *err);
void book_list_free(struct book_list *l);
/* One that can be used comes before others. NULL: there is none. */
const struct book_entry *book_find(const struct book_list *l, const char *name);
/* Of those that were listed, and are the person's own or trusted, one to which `fits` says yes; its
 * name in `out`. */
bool book_recall(const struct book *b, bool (*fits)(const void *it, const char *word),
		 const char *word, char *out, size_t size);

/* How many folders above `cwd` its repository begins, 15 at the most; 0 outside of one. The home
 * folder is no project. */
unsigned book_ups(const char *cwd);

/* A person trusts what has this hash; for as long as the process runs. AVA_EINVAL: no SHA-256;
 * AVA_ETOOBIG, AVA_ENOMEM. */
int book_trust(const char *hash);

#endif
