/* The program of a folder's unit tests. `test_base` runs each group in a process of its
 * own, so that a crash takes one; `test_base buf` that group, in this process; `test_base
 * 'buf:*grow*'` its tests of that name; `test_base -l` lists them. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TESTS_MAX 256 /* of a group */

static struct unit_test *tests; /* by file, then line */
static struct unit_group *groups;

void unit_add(struct unit_test *test)
{
	struct unit_test **at = &tests;

	while (*at && (strcmp((*at)->file, test->file) < 0 ||
		       (strcmp((*at)->file, test->file) == 0 && (*at)->line <= test->line)))
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

void unit_add_group(struct unit_group *group)
{
	group->next = groups;
	groups = group;
}

/* "…/test_buf.c" is of the group "buf". */
static bool is_of(const char *file, const char *group, size_t len)
{
	const char *name = strrchr(file, '/');

	name = name ? name + 1 : file;
	return strncmp(name, "test_", 5) == 0 && strncmp(name + 5, group, len) == 0 &&
	       strcmp(name + 5 + len, ".c") == 0;
}

static const char *running;     /* the file of the group at work */
static struct unit_group alone; /* of a file without UNIT_GROUP */

static struct unit_group *group_of(const char *file)
{
	for (struct unit_group *g = groups; g; g = g->next)
		if (strcmp(g->file, file) == 0)
			return g;
	return &alone;
}

#pragma weak test_clock_go /* of programs that have that clock */

/* Also behind a test that failed while it stood. */
static int clock_goes(void **state)
{
	(void)state;
	if (test_clock_go)
		test_clock_go();
	return 0;
}

static int run_all(void)
{
	struct unit_group *g = group_of(running);
	struct CMUnitTest all[TESTS_MAX];
	char name[64];
	size_t n = 0;

	for (struct unit_test *t = tests; t; t = t->next) {
		if (strcmp(t->file, running) != 0)
			continue;
		if (n == TESTS_MAX)
			abort();
		all[n++] = (struct CMUnitTest){
			.name = t->name,
			.test_func = t->run,
			.setup_func = t->set_up ? t->set_up : g->before,
			.teardown_func = t->tear_down ? t->tear_down
					 : g->after   ? g->after
						      : clock_goes,
		};
	}
	snprintf(name, sizeof(name), "%s", strrchr(running, '/') + 1);
	return _cmocka_run_group_tests(name, all, n, g->first, g->last);
}

static int run_group(const char *file)
{
	struct unit_group *g = group_of(file);

	running = file;
	return g->run ? g->run(run_all) : run_all();
}

/* In a process of its own; what it left unsaid is said. */
static int run_apart(const char *file)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(run_group(file));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: signal %d\n", file, WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* "group" or "group:pattern". */
static int run_named(const char *what)
{
	size_t len = strcspn(what, ":");

	if (what[len] == ':')
		cmocka_set_test_filter(what + len + 1);
	for (struct unit_test *t = tests; t; t = t->next)
		if (is_of(t->file, what, len))
			return run_group(t->file);
	fprintf(stderr, "there is no group '%.*s'; -l lists them\n", (int)len, what);
	return 2;
}

static int list(void)
{
	for (struct unit_test *t = tests; t; t = t->next)
		printf("%s:%d %s\n", strrchr(t->file, '/') + 1, t->line, t->name);
	return 0;
}

int main(int argc, char **argv)
{
	const char *last = NULL;
	int failed = 0;

	if (argc > 1 && strcmp(argv[1], "-l") == 0)
		return list();
	if (argc > 1 && strncmp(argv[1], "--", 2) == 0)
		for (struct unit_group *g = groups; g; g = g->next)
			if (g->program)
				return g->program(argc, argv);
	if (argc == 2)
		return run_named(argv[1]);
	for (struct unit_test *t = tests; t; t = t->next)
		if (!last || strcmp(last, t->file) != 0)
			failed += run_apart(last = t->file) != 0;
	return failed > 0;
}
