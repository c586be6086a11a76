/* Opening below the working folder: what is reached, what is refused, with
 * openat2 and without, and while folders and links are swapped. */
#include "tool_unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/util.h"
#include "tool/root.h"

static const struct {
	const char *arg, *path; /* path NULL: refused */
} paths[] = {
	{"a", "a"},
	{"", "."},
	{".", "."},
	{"./a", "a"},
	{"a/./b//c/", "a/b/c"},
	{"a/../b", "b"},
	{"a/..", "."},
	{"..", NULL},
	{"../..", NULL},
	{"../../", NULL},
	{"a/../../b", NULL},
	{"/", NULL},
	{"/etc/passwd", NULL},
	{"/proj", "."},
	{"/proj/", "."},
	{"/proj/a", "a"},
	{"/proj/../a", NULL},
	{"/project/a", NULL},
	{"/pro", NULL},
	{"...", "..."},
	{"~/x", "~/x"},
	{"a\\b", "a\\b"},
};

TEST(paths)
{
	struct root root = {.fd = -1, .cwd = "/proj"};
	char out[PATH_MAX], *big = malloc(3 * PATH_MAX);
	struct ava_error err;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		int rv = root_path(&root, paths[i].arg, out, &err);

		if (rv != (paths[i].path != NULL ? 0 : AVA_EDENIED) ||
		    (rv == 0 && strcmp(out, paths[i].path) != 0))
			fail_msg("%s: %d %s", paths[i].arg, rv, rv == 0 ? out : err.text);
	}
	assert_int_equal(root_path(&root, "a\nb", out, &err), AVA_EINVAL);
	assert_int_equal(root_path(&root, "a\033[2J", out, &err), AVA_EINVAL);
	memset(big, 'x', 3 * PATH_MAX);
	big[3 * PATH_MAX - 1] = '\0';
	assert_int_equal(root_path(&root, big, out, &err), AVA_EINVAL);
	for (size_t i = 1; i < 3 * PATH_MAX - 2; i += 2)
		big[i] = '/';
	assert_int_equal(root_path(&root, big, out, &err), AVA_EINVAL);
	free(big);
	/* In a run at "/" everything is below it. */
	root.cwd = "/";
	assert_int_equal(root_path(&root, "/etc/passwd", out, &err), 0);
	assert_string_equal(out, "etc/passwd");
}

/* ---- a tree with everything that must not be read */

struct tree {
	char top[256], dir[300];
	struct root root;
};

static void at(const struct tree *t, const char *path, char out[600])
{
	snprintf(out, 600, "%s/%s", t->dir, path);
}

static void link_to(const struct tree *t, const char *to, const char *path)
{
	char full[600];

	at(t, path, full);
	assert_int_equal(symlink(to, full), 0);
}

static void make_socket(const struct tree *t, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char full[600];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	at(t, path, full);
	snprintf(a.sun_path, sizeof(a.sun_path), "%.*s", (int)sizeof(a.sun_path) - 1, full);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
}

static void tree_open(struct tree *t)
{
	char full[600];

	snprintf(t->top, sizeof(t->top), "%s", unit_tmpdir());
	snprintf(t->dir, sizeof(t->dir), "%s/proj", t->top);
	assert_int_equal(mkdir(t->dir, 0700), 0);
	snprintf(full, sizeof(full), "%s/secret", t->top);
	unit_write(full, "outside", 7);
	at(t, "sub", full);
	mkdir(full, 0700);
	at(t, "sub/file", full);
	unit_write(full, "inside", 6);
	at(t, "fifo", full);
	assert_int_equal(mkfifo(full, 0600), 0);
	make_socket(t, "socket");
	link_to(t, "sub/file", "link");
	link_to(t, "sub", "linkdir");
	link_to(t, "../proj/sub/file", "roundabout");
	link_to(t, "../secret", "out");
	link_to(t, "..", "outdir");
	link_to(t, "/etc/passwd", "passwd");
	link_to(t, "/dev/zero", "zero");
	link_to(t, "/proc/self/fd/0", "magic");
	link_to(t, "loop", "loop");
	link_to(t, "gone", "dangling");
	t->root = (struct root){.cwd = t->dir};
	t->root.fd = open(t->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->root.fd >= 0);
}

static void tree_close(struct tree *t)
{
	close(t->root.fd);
	unit_rmdir(t->top);
}

#define FOLLOWED 1 /* by openat2; refused without it */
static const struct {
	const char *path;
	int code, how;
	const char *says;
} opens[] = {
	{"sub/file", 0, 0, NULL},
	{"link", 0, FOLLOWED, NULL},
	{"linkdir/file", 0, FOLLOWED, NULL},
	{"roundabout", AVA_EDENIED, 0, NULL}, /* leaves, even though it comes back */
	{"out", AVA_EDENIED, 0, NULL},
	{"outdir/secret", AVA_EDENIED, 0, NULL},
	{"passwd", AVA_EDENIED, 0, NULL},
	{"zero", AVA_EDENIED, 0, NULL},
	{"magic", AVA_EDENIED, 0, NULL},
	{"loop", AVA_EDENIED, 0, NULL},
	{"dangling", AVA_ENOENT, FOLLOWED, "search_codebase can find it"},
	{"fifo", AVA_EDENIED, 0, "fifo is a FIFO"},
	{"socket", AVA_EDENIED, 0, "socket is a socket"},
	{"sub", AVA_EDENIED, 0, "is a folder"},
	{".", AVA_EDENIED, 0, "is a folder"},
	{"none", AVA_ENOENT, 0, "no file none below "},
	{"sub/file/x", AVA_ENOENT, 0, NULL},
};

static void open_all(const struct tree *t, bool openat2)
{
	for (size_t i = 0; i < ARRAY_LEN(opens); i++) {
		bool refused = !openat2 && opens[i].how == FOLLOWED;
		struct ava_error err = {.code = 0};
		struct stat st;
		char text[16] = "";
		int fd = root_open_file(&t->root, opens[i].path, &st, &err);
		int code = fd >= 0 ? 0 : fd, want = refused ? AVA_EDENIED : opens[i].code;

		if (code != want)
			fail_msg("%s%s: %d, expected %d (%s)", opens[i].path,
				 openat2 ? "" : " (by parts)", code, want, err.text);
		if (opens[i].says != NULL && !refused)
			assert_holds(err.text, opens[i].says);
		if (fd < 0)
			continue;
		assert_int_equal(read(fd, text, sizeof(text) - 1), 6);
		assert_string_equal(text, "inside");
		assert_int_equal(st.st_size, 6);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
	}
}

/* Where the lookup is in memory: the same file or none, never one that the
 * other way refuses. */
static void cached_all(const struct tree *t, bool openat2)
{
	int opened = 0;

	for (size_t i = 0; i < ARRAY_LEN(opens); i++) {
		struct stat st;
		char text[16] = "";
		int fd = root_open_cached(&t->root, opens[i].path, &st);

		if (fd < 0)
			continue;
		opened++;
		assert_int_equal(opens[i].code, 0);
		assert_int_equal(read(fd, text, sizeof(text) - 1), 6);
		assert_string_equal(text, "inside");
		assert_int_equal(st.st_size, 6);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
	}
	if (!openat2)
		assert_int_equal(opened, 0);
}

TEST(open)
{
	struct tree t;
	struct ava_error err;
	int fd;

	tree_open(&t);
	open_all(&t, true);
	cached_all(&t, true);
	root_use_openat2(false);
	open_all(&t, false);
	cached_all(&t, false);
	fd = root_open_dir(&t.root, "sub", &err);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(root_open_dir(&t.root, "outdir", &err), AVA_ENOENT);
	root_use_openat2(true);
	fd = root_open_dir(&t.root, "linkdir", &err);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(root_open_dir(&t.root, "outdir", &err), AVA_EDENIED);
	tree_close(&t);
}

/* procfs holds this program's memory and environment; devices are no files. */
TEST(system_files)
{
	struct root root = {.fd = open("/", O_PATH | O_DIRECTORY), .cwd = "/"};
	struct ava_error err;
	struct stat st;

	assert_int_equal(root_open_file(&root, "proc/self/mem", &st, &err), AVA_EDENIED);
	assert_int_equal(root_open_file(&root, "proc/self/environ", &st, &err), AVA_EDENIED);
	assert_holds(err.text, "belongs to the system");
	assert_int_equal(root_open_file(&root, "dev/zero", &st, &err), AVA_EDENIED);
	assert_holds(err.text, "is a device");
	assert_true(root_open_cached(&root, "proc/self/environ", &st) < 0);
	assert_true(root_open_cached(&root, "dev/zero", &st) < 0);
	assert_int_equal(root_open_dir(&root, "proc/self", &err), AVA_EDENIED);
	close(root.fd);
}

TEST(no_permission)
{
	struct tree t;
	struct ava_error err;
	struct stat st;
	char full[600];

	if (geteuid() == 0) {
		print_message("root may read everything\n");
		skip();
	}
	tree_open(&t);
	at(&t, "sub/file", full);
	chmod(full, 0);
	assert_int_equal(root_open_file(&t.root, "sub/file", &st, &err), AVA_EDENIED);
	assert_holds(err.text, "no permission");
	tree_close(&t);
}

/* ---- swapping */

struct swapper {
	const struct tree *t;
	atomic_bool end;
	bool of_file; /* swap the file, not its folder */
};

/* "p" is a folder inside, then a link that leads outside, and so on. */
static void *swap(void *arg)
{
	struct swapper *s = arg;
	char p[600], in[600], out[600];

	at(s->t, s->of_file ? "p/file" : "p", p);
	at(s->t, "keep", in);
	at(s->t, "bad", out);
	while (!atomic_load(&s->end)) {
		/* The two change places in one step, so that p is always there. */
		renameat2(AT_FDCWD, p, AT_FDCWD, out, RENAME_EXCHANGE);
		renameat2(AT_FDCWD, p, AT_FDCWD, out, RENAME_EXCHANGE);
		rename(p, in);
		rename(in, p);
	}
	return NULL;
}

/* 10,000 reads; none may ever see what is outside. */
static void race(bool of_file, bool openat2)
{
	struct tree t;
	struct swapper s = {.t = &t, .of_file = of_file};
	pthread_t thread;
	char full[600], text[16];
	int inside = 0, refused = 0;

	tree_open(&t);
	root_use_openat2(openat2);
	at(&t, "p", full);
	mkdir(full, 0700);
	at(&t, "p/file", full);
	unit_write(full, "inside", 6);
	snprintf(full, sizeof(full), "%s/file", t.top);
	unit_write(full, "outside", 7);
	link_to(&t, of_file ? "../../secret" : "..", of_file ? "p/bad" : "bad");
	if (of_file)
		link_to(&t, "../secret", "bad");
	assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
	/* More, should the other thread not have come to run yet. */
	for (int i = 0; i < 10000 || (i < 10000000 && (inside == 0 || refused == 0)); i++) {
		struct ava_error err;
		struct stat st;
		ssize_t n;
		int fd = i % 2 == 0 ? root_open_file(&t.root, "p/file", &st, &err)
				    : root_open_cached(&t.root, "p/file", &st);

		if (fd < 0) {
			refused++;
			continue;
		}
		memset(text, 0, sizeof(text));
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		assert_int_equal(n, 6);
		assert_string_equal(text, "inside");
		inside++;
	}
	atomic_store(&s.end, true);
	pthread_join(thread, NULL);
	print_message("%s, %s: %d inside, %d refused, 0 outside\n", of_file ? "file" : "folder",
		      openat2 ? "openat2" : "by parts", inside, refused);
	assert_true(inside > 0 && refused > 0);
	root_use_openat2(true);
	tree_close(&t);
}

TEST(races)
{
	race(false, true);
	race(true, true);
	race(false, false);
	race(true, false);
}
