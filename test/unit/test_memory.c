/* The memory: what is kept, found, forgotten; what becomes of it when the disk fails, the
 * process is killed at any write, or the file is damaged. A VFS in front of SQLite's own is the
 * disk. */
#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "memory/memory.h"
#include "os/loop.h"

/* ---- a disk that fails, or at which the process dies, at its k-th write or sync */

enum fault { FAULT_NONE, FAULT_FULL, FAULT_WRITE, FAULT_SYNC, FAULT_KILL };

static atomic_int fault_kind, fault_left; /* 1: the next one */
static atomic_bool fault_hit;

static bool is_due(bool sync)
{
	int kind = atomic_load(&fault_kind);

	if (kind == FAULT_NONE || (kind == FAULT_SYNC && !sync) ||
	    ((kind == FAULT_FULL || kind == FAULT_WRITE) && sync))
		return false;
	if (atomic_fetch_sub(&fault_left, 1) > 1)
		return false;
	atomic_store(&fault_hit, true);
	if (kind == FAULT_KILL)
		_exit(0);
	return true;
}

static sqlite3_vfs *real_vfs;
static const sqlite3_io_methods *real_methods;

static int shim_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	if (is_due(false))
		return atomic_load(&fault_kind) == FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
	return real_methods->xWrite(f, from, n, at);
}

static int shim_sync(sqlite3_file *f, int flags)
{
	return is_due(true) ? SQLITE_IOERR_FSYNC : real_methods->xSync(f, flags);
}

/* The file is SQLite's own, but for its writes and syncs; only a database has locks. */
static int shim_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	static sqlite3_io_methods without_locks, with_locks;
	sqlite3_io_methods *methods = flags & SQLITE_OPEN_MAIN_DB ? &with_locks : &without_locks;
	int rc = real_vfs->xOpen(real_vfs, name, f, flags, out);

	if (rc != SQLITE_OK || !f->pMethods)
		return rc;
	real_methods = f->pMethods;
	*methods = *real_methods;
	methods->xWrite = shim_write;
	methods->xSync = shim_sync;
	f->pMethods = methods;
	return rc;
}

static sqlite3_vfs shim;

static int set_up_all(void **state)
{
	real_vfs = sqlite3_vfs_find(NULL);
	shim = *real_vfs;
	shim.zName = "shim";
	shim.xOpen = shim_open;
	return sqlite3_vfs_register(&shim, 1);
}

/* ---- a memory */

struct world {
	char dir[256];
	struct os_loop *loop;
	struct memory *memory;
	struct memory_op *op; /* the answered one */
};

static void answered(struct memory_op *op)
{
	struct world *w = op->user;

	w->op = op;
}

static void start(struct world *w)
{
	w->memory = memory_new(w->loop, w->dir);
	assert_non_null(w->memory);
}

static void stop(struct world *w)
{
	memory_free(w->memory);
	w->memory = NULL;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	atomic_store(&fault_kind, FAULT_NONE);
	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	w->loop = os_loop_new(NULL);
	start(w);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	atomic_store(&fault_kind, FAULT_NONE);
	memory_op_free(w->op);
	stop(w);
	os_loop_free(w->loop);
	unit_rmdir(w->dir);
	free(w);
	return 0;
}

static struct memory_op *op_of(struct world *w, enum memory_what what)
{
	struct memory_op *op = memory_op_new(what, answered, w);

	op->row.user = "ben";
	op->row.cwd = "";
	op->limit = 100;
	return op;
}

/* The answered op, good until the next one. */
static struct memory_op *ask(struct world *w, struct memory_op *op)
{
	memory_op_free(w->op);
	w->op = NULL;
	memory_ask(w->memory, op);
	assert_null(w->op); /* never during the call */
	for (int i = 0; !w->op && i < 2000; i++)
		os_loop_step(w->loop, 10);
	assert_non_null(w->op);
	return w->op;
}

static struct memory_op *add(struct world *w, const char *text)
{
	struct memory_op *op = op_of(w, MEMORY_WRITE);

	op->row.text = text;
	op->row.session = "";
	return ask(w, op);
}

static size_t find(struct world *w, const char *words)
{
	struct memory_op *op = op_of(w, MEMORY_FIND);

	op->words = words;
	op->all = true;
	op = ask(w, op);
	if (op->rv != 0)
		fail_msg("%s: %s", words, op->err.text);
	return op->nrows;
}

static int forget(struct world *w, const char *id)
{
	struct memory_op *op = op_of(w, MEMORY_REMOVE);
	const char *ids[] = {id};

	op->ids = ids;
	op->nids = 1;
	return ask(w, op)->rv;
}

TEST_OF(empty, struct world *w)
{
	char path[300];

	assert_int_equal(find(w, "tea"), 0);
	assert_int_equal(find(w, NULL), 0);
	assert_int_equal(forget(w, "M-123456"), AVA_ENOENT);
	assert_int_equal(ask(w, op_of(w, MEMORY_LOOK))->rv, 0);
	snprintf(path, sizeof(path), "%s/memory.db", w->dir);
	assert_int_not_equal(access(path, F_OK), 0); /* asking makes no file */
}

TEST_OF(words, struct world *w)
{
	static const struct {
		const char *words;
		size_t found;
	} cases[] = {
		{"tea", 1},
		{"TEA", 1},
		{"zoe", 1},
		{"Zoë lyon", 1},
		{"lyo", 1},
		{"sister tea", 2},
		{"rabbit", 0},
		{"", 3},
		{"\"", 0},
		{"tea OR", 1},
		{"NEAR(tea", 1},
		{"tea*", 1},
		{"text:tea", 1},
		{"-tea", 1},
		{"(((", 0},
		{"% _", 0},
		{"tea AND NOT \"", 1},
		{"東京", 1},
		{"京に", 1},
		{"'; DROP", 0},
		{"…", 0},
	};

	assert_int_equal(add(w, "I prefer tea over coffee")->rv, 0);
	assert_int_equal(add(w, "my sister Zoë lives in Lyon")->rv, 0);
	assert_int_equal(add(w, "私は東京に住んでいます")->rv, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		print_message("%s\n", cases[i].words);
		assert_int_equal(find(w, cases[i].words), cases[i].found);
	}
}

TEST_OF(same_and_near, struct world *w)
{
	struct memory_op *op;
	char id[MEMORY_ID_LEN];

	op = add(w, "I prefer short answers");
	assert_int_equal(op->outcome, MEMORY_ADDED);
	assert_string_equal(op->rows[0].kind, "person");
	snprintf(id, sizeof(id), "%s", op->rows[0].id);
	op = add(w, "i prefer  SHORT answers!");
	assert_int_equal(op->outcome, MEMORY_CHANGED);
	assert_string_equal(op->rows[0].id, id);
	op = add(w, "i prefer  SHORT answers!");
	assert_int_equal(op->outcome, MEMORY_KNOWN);
	/* What contradicts it is shown, and never taken for the same. */
	op = add(w, "I prefer long answers");
	assert_int_equal(op->outcome, MEMORY_ADDED);
	assert_int_equal(op->nrows, 2);
	assert_string_equal(op->rows[1].id, id);
	op = op_of(w, MEMORY_WRITE);
	op->row.id = id;
	op->row.text = "I prefer long answers";
	assert_int_equal(ask(w, op)->rv, AVA_EEXIST);
	op = op_of(w, MEMORY_WRITE);
	op->row.id = id;
	op->row.cwd = NULL;
	op->row.text = "I prefer very short answers";
	op->row.how = "edited";
	op = ask(w, op);
	assert_int_equal(op->outcome, MEMORY_CHANGED);
	assert_string_equal(op->rows[0].how, "edited");
	assert_int_equal(find(w, "answers"), 2);
}

TEST_OF(whose, struct world *w)
{
	struct memory_op *op = op_of(w, MEMORY_WRITE);
	char id[MEMORY_ID_LEN];

	op->row.user = "ann";
	op->row.text = "tea is for Ann";
	op = ask(w, op);
	snprintf(id, sizeof(id), "%s", op->rows[0].id);
	assert_int_equal(find(w, "tea"), 0);
	assert_int_equal(find(w, NULL), 0);
	assert_int_equal(forget(w, id), AVA_ENOENT);
	op = op_of(w, MEMORY_WRITE);
	op->row.id = id;
	op->row.text = "mine";
	assert_int_equal(ask(w, op)->rv, AVA_ENOENT);
	op = op_of(w, MEMORY_REMOVE);
	op->all = true;
	assert_int_equal(ask(w, op)->rv, 0);
	op = op_of(w, MEMORY_FIND);
	op->row.user = "ann";
	assert_int_equal(ask(w, op)->nrows, 1);
}

TEST_OF(where, struct world *w)
{
	static const struct {
		const char *cwd;
		size_t found;
	} cases[] = {{"/a/b", 2}, {"/a/b/c", 2}, {"/a/bc", 1}, {"", 1}, {"/a", 1}};
	struct memory_op *op = op_of(w, MEMORY_WRITE);

	op->row.text = "the API is JSON";
	op->row.cwd = "/a/b";
	op = ask(w, op);
	assert_string_equal(op->rows[0].kind, "project");
	assert_int_equal(add(w, "JSON is fine")->rv, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		op = op_of(w, MEMORY_FIND);
		op->words = "JSON";
		op->row.cwd = cases[i].cwd;
		assert_int_equal(ask(w, op)->nrows, cases[i].found);
	}
}

TEST_OF(recall, struct world *w)
{
	struct memory_op *op;
	char text[80];
	size_t bytes = 0;

	for (int i = 0; i < 60; i++) {
		op = op_of(w, MEMORY_WRITE);
		snprintf(text, sizeof(text), "wish %d of the person in words that have a length",
			 i);
		op->row.text = text;
		op->row.kind = i < 50 ? "person" : "fact";
		op->row.pinned = i == 3 || i == 55;
		assert_int_equal(ask(w, op)->rv, 0);
	}
	op = op_of(w, MEMORY_WRITE);
	op->row.text = "the kettle stands in the shed";
	op->row.kind = "fact";
	assert_int_equal(ask(w, op)->rv, 0);
	op = op_of(w, MEMORY_RECALL);
	op->bytes = 2000;
	op->words = "where is the kettle?";
	op = ask(w, op);
	for (size_t i = 0; i < op->nrows; i++)
		bytes += strlen(op->rows[i].text);
	assert_true(bytes < 2000 && bytes > 500);
	/* The pinned first, then the newest of the person, then what fits the words. */
	assert_true(op->rows[0].pinned && op->rows[1].pinned && !op->rows[2].pinned);
	assert_non_null(strstr(op->rows[2].text, "wish 49 "));
	assert_non_null(strstr(op->rows[op->nrows - 1].text, "kettle"));
}

TEST_OF(bounds, struct world *w)
{
	static const char fill[] =
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
		"INSERT INTO memory SELECT NULL, 'M-x' || i, 'ben', 'fact', '', 'row number ' || i "
		"|| ' about ' || (i * 7919 % 10007), 'n' || i, '', 'added', '', 0, i, i, x'00', '' "
		"FROM n";
	struct memory_op *op;
	char text[MEMORY_TEXT_MAX + 2], path[300];
	sqlite3 *db;
	int64_t from;

	memset(text, 'x', sizeof(text));
	text[MEMORY_TEXT_MAX + 1] = 0;
	assert_int_equal(add(w, text)->rv, AVA_ETOOBIG);
	assert_int_equal(add(w, " \n")->rv, AVA_EINVAL);
	assert_int_equal(add(w, "?! ...")->rv, AVA_EINVAL);
	op = op_of(w, MEMORY_WRITE);
	op->row.text = "x";
	op->row.kind = "rumour";
	assert_int_equal(ask(w, op)->rv, AVA_EINVAL);
	assert_int_equal(add(w, "one")->rv, 0);
	stop(w);
	snprintf(path, sizeof(path), "%s/memory.db", w->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, fill, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	start(w);
	op = add(w, "one too many");
	assert_int_equal(op->rv, AVA_ETOOBIG);
	assert_non_null(strstr(op->err.text, "ava memory rm"));
	assert_int_equal(add(w, "One")->outcome, MEMORY_CHANGED); /* no more of them */
	from = clock_mono_ms();
	for (int i = 0; i < 20; i++)
		assert_true(find(w, "number 77") > 0);
	print_message("a search in 10,000 rows: %.2f ms\n", (double)(clock_mono_ms() - from) / 20);
}

/* Does this stand in a file of the memory, as bytes? */
static bool on_disk(const struct world *w, const char *text)
{
	static const char *const names[] = {"memory.db", "memory.db-wal"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[300], *data;
		size_t len;

		snprintf(path, sizeof(path), "%s/%s", w->dir, names[i]);
		if (access(path, F_OK) != 0)
			continue;
		data = unit_read(path, &len);
		found = found || memmem(data, len, text, strlen(text));
		free(data);
	}
	return found;
}

TEST_OF(forgotten_for_good, struct world *w)
{
	char id[MEMORY_ID_LEN], text[80];
	struct memory_op *op;

	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof(text), "row %d with quite ordinary words", i);
		assert_int_equal(add(w, text)->rv, 0);
	}
	op = add(w, "the xylophone is hidden in Quaxburg");
	snprintf(id, sizeof(id), "%s", op->rows[0].id);
	assert_true(on_disk(w, "xylophone") && on_disk(w, "quaxburg")); /* index and text */
	assert_int_equal(forget(w, id), 0);
	assert_int_equal(w->op->ndue > 0 ? 0 : 1, 0);
	assert_false(on_disk(w, "xylophone") || on_disk(w, "Quaxburg") || on_disk(w, "quaxburg"));
	assert_int_equal(find(w, "xylophone"), 0);
	assert_int_equal(find(w, "ordinary"), 50);
	assert_int_equal(forget(w, id), AVA_ENOENT);
	op = op_of(w, MEMORY_REMOVE);
	op->all = true;
	assert_int_equal(ask(w, op)->rv, 0);
	assert_false(on_disk(w, "ordinary"));
}

/* The disk is full while the file is written anew: the row is gone, its bytes at the next start. */
TEST_OF(wiped_later, struct world *w)
{
	char id[MEMORY_ID_LEN];
	struct memory_op *op;
	int k = 0;

	do {
		op = add(w, "the xylophone is hidden in Quaxburg");
		assert_int_equal(op->rv, 0);
		snprintf(id, sizeof(id), "%s", op->rows[0].id);
		atomic_store(&fault_hit, false);
		atomic_store(&fault_left, ++k);
		atomic_store(&fault_kind, FAULT_FULL);
		(void)forget(w, id);
		atomic_store(&fault_kind, FAULT_NONE);
		if (w->op->rv != 0)
			assert_int_equal(w->op->rv, AVA_EFULL);
		if (w->op->rv == 0 && atomic_load(&fault_hit) && w->op->err.text[0]) {
			assert_non_null(strstr(w->op->err.text, "until the next removal or start"));
			stop(w);
			start(w);
			assert_int_equal(find(w, "xylophone"), 0);
			assert_false(on_disk(w, "xylophone") || on_disk(w, "quaxburg"));
		}
		if (w->op->rv == 0)
			assert_int_equal(find(w, "xylophone"), 0);
	} while (atomic_load(&fault_hit));
	assert_true(k > 5);
}

/* What was refused is not there, what was answered is, what is unknown is one of both; and
 * whatever is there is due to be told. */
static void check_after(struct world *w, int rv, const char *text)
{
	size_t n, due = 0;
	struct memory_op *op;

	n = find(w, text);
	if (rv == 0)
		assert_int_equal(n, 1);
	else if (rv != AVA_EUNKNOWN)
		assert_int_equal(n, 0);
	op = ask(w, op_of(w, MEMORY_LOOK));
	assert_int_equal(op->rv, 0);
	for (size_t i = 0; i < op->ndue; i++)
		due += strcmp(op->due[i].change, "added") == 0;
	assert_true(due >= n);
}

static void disk_fails(struct world *w, enum fault kind, bool fresh)
{
	char text[40];
	int k = 0, failed = 0, rv;
	struct memory_op *op;

	do {
		if (fresh) {
			char path[300];

			stop(w);
			snprintf(path, sizeof(path), "%s/memory.db", w->dir);
			unlink(path);
			start(w);
		} else {
			assert_int_equal(add(w, "there before")->rv, 0);
		}
		snprintf(text, sizeof(text), "number%d", ++k);
		atomic_store(&fault_hit, false);
		atomic_store(&fault_left, k);
		atomic_store(&fault_kind, kind);
		op = add(w, text);
		atomic_store(&fault_kind, FAULT_NONE);
		rv = op->rv;
		failed += rv != 0;
		if (rv != 0 && rv != AVA_EFULL && rv != AVA_EIO && rv != AVA_EUNKNOWN)
			fail_msg("%d: %s", rv, op->err.text);
		if (rv != 0)
			assert_true(strlen(op->err.text) > 20);
		check_after(w, rv, text);
		stop(w);
		start(w);
		check_after(w, rv, text);
	} while (atomic_load(&fault_hit));
	assert_true(failed > 0);
}

TEST(full)
{
	disk_fails(*state, FAULT_FULL, false);
	disk_fails(*state, FAULT_FULL, true);
}

TEST(writes_fail)
{
	disk_fails(*state, FAULT_WRITE, false);
}

TEST(syncs_fail)
{
	disk_fails(*state, FAULT_SYNC, false);
	disk_fails(*state, FAULT_SYNC, true);
}

/* A process of its own that writes, changes and forgets, and says what was answered. */
static void child(const char *dir, int k, int out)
{
	struct world w = {.loop = os_loop_new(NULL)};
	char id[MEMORY_ID_LEN];

	snprintf(w.dir, sizeof(w.dir), "%s", dir);
	start(&w);
	atomic_store(&fault_left, k);
	atomic_store(&fault_kind, FAULT_KILL);
	if (add(&w, "first word")->rv == 0 && write(out, "1", 1) != 1)
		_exit(1);
	if (add(&w, "second word")->rv == 0 && write(out, "2", 1) != 1)
		_exit(1);
	snprintf(id, sizeof(id), "%s", w.op->rows[0].id);
	if (forget(&w, id) == 0 && write(out, "3", 1) != 1)
		_exit(1);
	_exit(42);
}

TEST_OF(killed_at_every_write, struct world *w)
{
	int k = 0, status;

	do {
		char said[8] = "", path[300];
		struct memory_op *op;
		int pipes[2];
		size_t first, second;
		pid_t pid;

		stop(w);
		for (size_t i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "%s/memory.db%s", w->dir,
				 (const char *[]){"", "-wal", "-shm"}[i]);
			unlink(path);
		}
		assert_int_equal(pipe(pipes), 0);
		k++;
		pid = fork();
		if (pid == 0)
			child(w->dir, k, pipes[1]);
		close(pipes[1]);
		assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		assert_true(read(pipes[0], said, 7) >= 0);
		close(pipes[0]);
		start(w);
		first = find(w, "first");
		second = find(w, "second");
		if (strchr(said, '1'))
			assert_int_equal(first, 1);
		if (strchr(said, '2') && !strchr(said, '3'))
			assert_true(second == 1 || strstr(said, "12")); /* being forgotten */
		if (strchr(said, '3')) {
			assert_int_equal(second, 0);
			assert_false(on_disk(w, "second"));
		}
		/* Opened again, what was half forgotten is gone as well. */
		if (second == 0 && strchr(said, '2'))
			assert_false(on_disk(w, "second"));
		op = ask(w, op_of(w, MEMORY_LOOK));
		assert_true(op->rv == 0 && op->ndue >= first + second);
	} while (WEXITSTATUS(status) != 42);
	print_message("killed at %d writes and syncs\n", k - 1);
	assert_true(k > 20);
}

TEST_OF(told, struct world *w)
{
	struct memory_op *op;

	assert_int_equal(add(w, "one")->ndue, 1);
	op = add(w, "two");
	assert_int_equal(op->ndue, 2); /* the first one was not told */
	assert_string_equal(op->due[1].change, "added");
	assert_string_equal(op->due[1].id, op->rows[0].id);
	assert_string_equal(op->due[1].hash, op->rows[0].hash);
	op = op_of(w, MEMORY_TOLD);
	op->told = w->op->due[0].n;
	assert_int_equal(ask(w, op)->rv, 0);
	op = ask(w, op_of(w, MEMORY_LOOK));
	assert_int_equal(op->ndue, 1);
}

TEST_OF(damaged, struct world *w)
{
	char path[300], was[16];
	struct stat st;
	struct memory_op *op;
	int fd;

	assert_int_equal(add(w, "one thing")->rv, 0);
	op = ask(w, op_of(w, MEMORY_RESET));
	assert_int_equal(op->rv, AVA_EEXIST); /* in order: nothing is set aside */
	stop(w);
	snprintf(path, sizeof(path), "%s/memory.db", w->dir);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, "garbage garbage!", 16, 0), 16);
	close(fd);
	start(w);
	for (int i = 0; i < 2; i++) {
		op = i ? add(w, "another") : ask(w, op_of(w, MEMORY_FIND));
		assert_int_equal(op->rv, AVA_ECORRUPT);
		assert_non_null(strstr(op->err.text, "ava memory reset"));
	}
	stop(w); /* nothing was written over it */
	fd = open(path, O_RDONLY);
	assert_true(pread(fd, was, 16, 0) == 16 && memcmp(was, "garbage garbage!", 16) == 0);
	close(fd);
	start(w);
	assert_int_equal(ask(w, op_of(w, MEMORY_FIND))->rv, AVA_ECORRUPT);
	assert_int_equal(ask(w, op_of(w, MEMORY_RESET))->rv, 0);
	assert_int_equal(add(w, "anew")->rv, 0);
	assert_int_equal(find(w, NULL), 1);
	snprintf(path, sizeof(path), "%s/memory.db.broken", w->dir);
	assert_int_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/memory.db", w->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* A page in the middle: found when the file is opened, not when somebody stumbles on it. */
TEST_OF(damaged_inside, struct world *w)
{
	char path[300], junk[2048], text[80];
	int fd;

	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "row %d that takes some room in the file", i);
		assert_int_equal(add(w, text)->rv, 0);
	}
	stop(w);
	memset(junk, 0xa5, sizeof(junk));
	snprintf(path, sizeof(path), "%s/memory.db", w->dir);
	fd = open(path, O_RDWR);
	for (off_t at = 4096; at < lseek(fd, 0, SEEK_END); at += 4096)
		assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
	close(fd);
	start(w);
	assert_int_equal(add(w, "x")->rv, AVA_ECORRUPT);
}

TEST_OF(newer, struct world *w)
{
	char path[300];
	sqlite3 *db;

	assert_int_equal(add(w, "one thing")->rv, 0);
	stop(w);
	snprintf(path, sizeof(path), "%s/memory.db", w->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL);
	sqlite3_close(db);
	start(w);
	assert_int_equal(add(w, "x")->rv, AVA_EFORMAT);
	assert_int_equal(ask(w, op_of(w, MEMORY_RESET))->rv, AVA_EEXIST);
}

TEST_OF(held_by_another, struct world *w)
{
	char path[300];
	struct memory_op *op;
	sqlite3 *db;

	assert_int_equal(add(w, "one thing")->rv, 0);
	snprintf(path, sizeof(path), "%s/memory.db", w->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	op = add(w, "x");
	assert_int_equal(op->rv, AVA_EBUSY);
	assert_non_null(strstr(op->err.text, "another program"));
	assert_int_equal(find(w, "thing"), 1); /* reading goes on */
	sqlite3_close(db);
	assert_int_equal(add(w, "x")->rv, 0);
}

static void count_done(struct memory_op *op)
{
	int *codes = op->user;

	codes[op->rv == AVA_EBUSY ? 1 : op->rv == AVA_ECANCELED ? 2 : 0]++;
	memory_op_free(op);
}

TEST_OF(queue_and_stop, struct world *w)
{
	int codes[3] = {0};
	atomic_bool wanted = false, unwanted = true;

	for (int i = 0; i < 400; i++) {
		struct memory_op *op = memory_op_new(MEMORY_WRITE, count_done, codes);

		op->row = (struct memory_row){.user = "ben", .text = "much", .cwd = ""};
		op->stop = i % 2 ? (void *)&unwanted : (void *)&wanted;
		memory_ask(w->memory, op);
	}
	stop(w); /* all are answered before it returns */
	assert_int_equal(codes[0] + codes[1] + codes[2], 400);
	assert_true(codes[0] > 0 && codes[1] > 0 && codes[2] > 0);
	start(w);
}

UNIT_GROUP(.before = set_up, .after = tear_down, .first = set_up_all);
