/* Views: looking at a file when it is first used, giving offsets, applying; see view.h.
 *
 * Appends of one view that wait together leave in one call. Descriptors are opened with
 * O_APPEND: whatever a person does to the file meanwhile, nothing of theirs is written over and
 * no hole appears. Once a second the path is checked: does it still name this file, with the
 * size we know? If not, writing goes on in the next part (x.2.jsonl). After a failure the rest
 * stays queued with errno, and applying it again goes on where it stopped. */
#include "journal/view.h"

#include <assert.h>
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "journal/files.h"

#define CHECK_MS     1000
#define PARTS_MAX    10000
#define FDS_MAX      16384
#define FDS_LEAST    16
#define FDS_RESERVED 2048 /* for sockets, pipes and everything else */

/* ---- descriptors: a cache with second chance, because a list moves two
 * neighbours at every use and their cache lines with them. */

static size_t fds_allowed(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return FDS_LEAST;
	if (r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &r) != 0)
			getrlimit(RLIMIT_NOFILE, &r);
	}
	if (r.rlim_cur < FDS_RESERVED + FDS_LEAST)
		return FDS_LEAST;
	return (size_t)MIN(r.rlim_cur - FDS_RESERVED, (rlim_t)FDS_MAX);
}

int view_set_init(struct view_set *s, int rootfd, size_t cap)
{
	*s = (struct view_set){.rootfd = rootfd, .cap = cap != 0 ? cap : fds_allowed()};
	s->open = calloc(s->cap, sizeof(s->open[0]));
	return s->open != NULL ? 0 : AVA_ENOMEM;
}

int view_take_kept(struct view_set *s, struct view *v)
{
	int fd = atomic_exchange(&v->kept, -1);

	if (fd >= 0)
		s->kept--;
	return fd;
}

/* A write during the sync has a mark of its own and is synced through the kept descriptor: give
 * that back unless there is a newer one. */
void view_synced(struct view_set *s, struct view *v)
{
	int fd = view_take_kept(s, v), was = VIEW_SYNCING, none = -1;

	if (!atomic_compare_exchange_strong(&v->mark, &was, VIEW_SYNCED) && fd >= 0) {
		s->kept++;
		if (atomic_compare_exchange_strong(&v->kept, &none, fd))
			return;
		s->kept--;
	}
	files_close(&fd);
}

/* `fd` is taken. With more than VIEW_KEPT of them the whole file system is synced, which reports
 * every error. */
static void keep_fd(struct view_set *s, struct view *v, int fd)
{
	int old = view_take_kept(s, v);

	files_close(&old);
	if (fd >= 0 && s->kept < VIEW_KEPT) {
		s->kept++;
		fd = atomic_exchange(&v->kept, fd);
		s->kept -= fd >= 0;
	} else {
		v->left = true; /* set before closing, for a checkpoint that opens the file later */
	}
	files_close(&fd);
}

static void fd_drop(struct view_set *s, size_t slot)
{
	struct view *v = s->open[slot];

	if (v->mark != VIEW_SYNCED)
		keep_fd(s, v, v->fd);
	else
		files_close(&v->fd);
	v->fd = -1;
	s->open[slot] = NULL;
	s->count--;
}

void view_set_fini(struct view_set *s)
{
	for (size_t i = 0; s->open != NULL && i < s->cap; i++)
		if (s->open[i] != NULL)
			fd_drop(s, i);
	free(s->open);
	s->open = NULL;
}

/* Free a slot by closing a descriptor that was not used lately. */
static size_t fd_slot(struct view_set *s)
{
	for (;;) {
		size_t at = s->hand;

		s->hand = (s->hand + 1) % s->cap;
		if (s->open[at] == NULL)
			return at;
		if (!s->open[at]->used) {
			fd_drop(s, at);
			return at;
		}
		s->open[at]->used = false;
	}
}

static void fd_close(struct view_set *s, struct view *v)
{
	if (v->fd >= 0)
		fd_drop(s, v->slot);
}

static int fd_open(struct view_set *s, struct view *v, int flags)
{
	char name[FILES_BUF];
	size_t slot = fd_slot(s);

	files_part_name(v->path, v->part, name);
	v->fd = files_open(s->rootfd, name, O_RDWR | O_APPEND | flags);
	if (v->fd < 0 && (errno == EMFILE || errno == ENFILE) && s->count > 0) {
		/* Other code holds more descriptors than FDS_RESERVED: keep fewer. */
		while (s->open[s->hand] == NULL)
			s->hand = (s->hand + 1) % s->cap;
		fd_drop(s, s->hand);
		v->fd = files_open(s->rootfd, name, O_RDWR | O_APPEND | flags);
	}
	if (v->fd < 0)
		return -1;
	s->open[slot] = v;
	v->slot = slot;
	s->count++;
	v->used = true;
	return 0;
}

/* ---- life */

struct view *view_new(const char *path, enum view_use use)
{
	size_t len = strlen(path);
	struct view *v = calloc(1, sizeof(*v) + len + 1);

	if (v == NULL)
		return NULL;
	v->use = use;
	v->fd = -1;
	v->kept = -1;
	v->path_len = len;
	memcpy(v->path, path, len + 1);
	return v;
}

void view_free(struct view *v)
{
	int kept = v != NULL ? v->kept : -1;

	if (v != NULL)
		assert(v->fd < 0 && v->first == NULL);
	files_close(&kept);
	free(v);
}

/* ---- looking at the file when a view is first used */

unsigned view_find_part(int rootfd, const char *path)
{
	char name[FILES_BUF];
	unsigned part = 1;
	struct stat st;

	while (part < PARTS_MAX && sys->fstatat(rootfd, files_part_name(path, part + 1, name), &st,
						AT_SYMLINK_NOFOLLOW) == 0)
		part++;
	return part;
}

/* The file ends in the middle of a line that is not ours: keep a copy of that line beside it and
 * leave the file alone. */
static int leave_broken(struct view_set *s, struct view *v, uint64_t size)
{
	char name[FILES_BUF], kept[FILES_BUF];
	char *line;
	size_t len;
	int rv;

	if (entry_last_line(v->fd, size, &line, &len) != 0)
		return -1;
	files_part_name(v->path, v->part, name);
	strncat(name, ".broken", sizeof(name) - strlen(name) - 1);
	rv = files_keep(s->rootfd, name, line, len, kept);
	free(line);
	if (rv != 0)
		return -1;
	fd_close(s, v);
	v->part++;
	return 0;
}

/* Look at a file that is written whole, or by others too: done before each use. */
static int look_regular(struct view_set *s, struct view *v)
{
	struct stat st;

	v->inode = 0;
	if (sys->fstatat(s->rootfd, v->path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		v->on_disk = S_ISREG(st.st_mode);
		v->inode = v->on_disk ? st.st_ino : 0;
		if (!v->on_disk && sys_put_aside(s->rootfd, v->path) != 0)
			return -1;
	} else if (errno != ENOENT) {
		return -1;
	}
	v->part = 1;
	return 0;
}

static int look_open(struct view_set *s, struct view *v)
{
	struct stat st;
	char last;

	/* A folder, pipe, socket or link put there by a person stays, like any of their files. */
	if (fd_open(s, v, 0) != 0 &&
	    (errno == EISDIR || errno == ENXIO || errno == ELOOP || errno == EACCES)) {
		v->part++;
		return 0;
	}
	if (v->fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (sys->fstat(v->fd, &st) != 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		fd_close(s, v);
		v->part++;
		return 0;
	}
	if (st.st_size > 0 && sys_read_all(v->fd, &last, 1, st.st_size - 1) != 0)
		return -1;
	if (st.st_size > 0 && last != '\n')
		return leave_broken(s, v, (uint64_t)st.st_size);
	v->on_disk = true;
	v->fresh = true; /* a person may have made the file a moment ago */
	v->inode = st.st_ino;
	v->size = v->end = (uint64_t)st.st_size;
	v->checked_ms = s->now_ms;
	return 0;
}

static int view_look(struct view_set *s, struct view *v)
{
	int rv;

	v->part = view_find_part(s->rootfd, v->path);
	rv = look_open(s, v);
	if (rv != 0) {
		int saved = errno;

		fd_close(s, v);
		v->part = 0;
		errno = saved;
	}
	return rv;
}

/* ---- laying down */

int view_lay(struct view_set *s, struct op *op)
{
	struct view *v = op->view;

	if (v->use != VIEW_APPENDED ? look_regular(s, v) != 0
				    : v->part == 0 && view_look(s, v) != 0)
		return err_is_full(errno) ? AVA_EFULL : AVA_EIO;
	op->creates = false;
	if (op->kind == JOURNAL_CREATE && (v->on_disk || v->making > 0))
		return AVA_EEXIST;
	if (op->kind != JOURNAL_DROP) {
		op->creates = !v->on_disk;
		v->making += op->creates;
	}
	op->offset = v->use == VIEW_APPENDED ? v->end : v->laid > 0 ? WAL_OURS : v->inode;
	v->laid++;
	if (op->kind == JOURNAL_APPEND)
		v->end += op->len;
	return 0;
}

void view_unlay(struct op *op)
{
	struct view *v = op->view;

	v->laid--;
	v->making -= op->creates;
	if (op->kind == JOURNAL_APPEND)
		v->end -= op->len;
}

/* ---- applying */

void view_queue(struct op *op)
{
	struct view *v = op->view;

	op->next = NULL;
	if (v->first == NULL)
		v->first = op;
	else
		v->last->next = op;
	v->last = op;
}

static void finish_op(struct view *v)
{
	struct op *op = v->first;

	v->first = op->next;
	v->laid--;
	v->making -= op->creates;
	op->commit->pending--;
}

/* Called after the write: a checkpoint that took the mark has not synced yet, so it covers the
 * new bytes. Called before the size is raised: a checkpoint that counts these bytes finds the
 * mark. Set each time, since a checkpoint may take it any moment. */
static void mark_written(struct view *v)
{
	atomic_store_explicit(&v->mark, VIEW_WRITTEN, memory_order_release);
	if (atomic_load_explicit(&v->dropped, memory_order_relaxed))
		v->dropped = false;
}

/* A person moved, replaced, cut or added to the file, which is theirs now. The queue was laid
 * down for it; a recovery before the next checkpoint finds these operations in the next part (or
 * puts them aside once more, which is harmless). */
static void go_on_in_next_part(struct view_set *s, struct view *v)
{
	fd_close(s, v);
	v->left = true; /* before the part: a checkpoint that syncs the next part finds it */
	v->end -= v->size - v->partial;
	v->inode = 0; /* in this order: a checkpoint reads part, size, inode, part */
	v->size = 0;
	v->part = MAX(view_find_part(s->rootfd, v->path), v->part) + 1;
	v->partial = 0;
	v->on_disk = false;
}

static void check_identity(struct view_set *s, struct view *v)
{
	char name[FILES_BUF];
	struct stat st;

	v->checked_ms = s->now_ms;
	if (sys->fstatat(s->rootfd, files_part_name(v->path, v->part, name), &st,
			 AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			go_on_in_next_part(s, v);
		return;
	}
	if (st.st_ino != v->inode || (uint64_t)st.st_size != v->size)
		go_on_in_next_part(s, v);
}

static int create_file(struct view_set *s, struct view *v)
{
	struct stat st;

	if (fd_open(s, v, O_CREAT | O_EXCL) != 0 &&
	    (errno != EEXIST || fd_open(s, v, O_CREAT) != 0))
		return -1;
	if (sys->fstat(v->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		fd_close(s, v);
		errno = EIO;
		return -1;
	}
	if ((uint64_t)st.st_size != v->size) {
		/* Another program made the file first, and keeps it. */
		go_on_in_next_part(s, v);
		errno = EAGAIN;
		return -1;
	}
	v->inode = st.st_ino;
	v->on_disk = true;
	v->fresh = true;
	v->checked_ms = s->now_ms;
	return 0;
}

/* Open a descriptor at the end of the right file. */
static int ready_file(struct view_set *s, struct view *v)
{
	if (v->on_disk && (v->fd < 0 || s->now_ms - v->checked_ms >= CHECK_MS))
		check_identity(s, v);
	if (!v->on_disk)
		return create_file(s, v);
	if (v->fd < 0)
		return fd_open(s, v, 0);
	v->used = true;
	return 0;
}

static int run_appends(struct view_set *s, struct view *v)
{
	size_t rest;
	ssize_t n;
	int niov = 0;

	if (ready_file(s, v) != 0)
		return -1;
	rest = v->partial; /* 0 when ready_file has gone on in the next part */
	for (struct op *op = v->first; op != NULL && niov < VIEW_IOV && op->kind == JOURNAL_APPEND;
	     op = op->next) {
		s->iov[niov].iov_base = (void *)(uintptr_t)(op->bytes + rest);
		s->iov[niov++].iov_len = op->len - rest;
		rest = 0;
	}
	if (niov == 1)
		n = sys->pwrite(v->fd, s->iov[0].iov_base, s->iov[0].iov_len, (off_t)v->size);
	else
		n = sys->pwritev(v->fd, s->iov, niov, (off_t)v->size);
	if (n < 0)
		return errno == EINTR ? 0 : -1;
	if (n == 0 && s->iov[niov - 1].iov_len > 0) {
		errno = EIO;
		return -1;
	}
	mark_written(v);
	atomic_store_explicit(&v->size, v->size + (size_t)n, memory_order_release);
	rest = v->partial + (size_t)n;
	while (v->first != NULL && v->first->kind == JOURNAL_APPEND && rest >= v->first->len) {
		rest -= v->first->len;
		finish_op(v);
	}
	v->partial = rest;
	return 0;
}

static int run_other(struct view_set *s, struct view *v, const struct op *op)
{
	int fd = -1;

	switch ((enum journal_op_kind)op->kind) {
	case JOURNAL_APPEND:
		return run_appends(s, v);
	case JOURNAL_PUT:
		/* Not synced here: until a checkpoint has synced it the journal still has the
		 * bytes, and a recovery puts them again. */
		fd = files_put(s->rootfd, v->path, op->bytes, op->len, false);
		if (fd < 0)
			return -1;
		break;
	case JOURNAL_ENTRY:
		if (entry_append(s->rootfd, v->path, op->bytes, op->len, op->id, ENTRY_NEW) < 0)
			return -1;
		fd = files_open(s->rootfd, v->path, O_RDONLY);
		break;
	case JOURNAL_CREATE:
		if (!v->on_disk && create_file(s, v) != 0)
			return -1;
		break;
	case JOURNAL_DROP:
		fd_close(s, v);
		break;
	}
	/* Before the mark: a checkpoint that takes the mark syncs the folder too. The descriptor
	 * is kept after the mark: view_synced gives back only a marked one. */
	if (v->use != VIEW_APPENDED) {
		v->on_disk = true;
		v->fresh = true;
	}
	mark_written(v);
	if (v->use != VIEW_APPENDED)
		keep_fd(s, v, fd);
	/* Forget a view soon that is written whole or rarely. */
	if (v->use != VIEW_APPENDED || op->kind == JOURNAL_DROP)
		v->dropped = true;
	finish_op(v);
	return 0;
}

int view_run(struct view_set *s, struct view *v)
{
	while (v->first != NULL) {
		int rv = run_other(s, v, v->first);

		if (rv != 0)
			return rv;
	}
	return 0;
}

int view_give_way(struct view_set *s, struct view *v)
{
	if (err_is_full(v->error))
		return -1;
	if (v->use == VIEW_APPENDED) {
		go_on_in_next_part(s, v);
		return 0;
	}
	for (; v->first != NULL; finish_op(v)) {
		const struct op *op = v->first;

		if (op->kind != JOURNAL_DROP &&
		    entry_put_aside(s->rootfd, v->path, op->bytes, op->len, op->id) != 0)
			return -1;
	}
	return 0;
}

/* ---- Entries of session files.
 *
 * A pi session is a chain: each entry names the one before as its parent, and an entry with a
 * wrong parent hides the conversation from programs that read it. So the last entry's id is read
 * under the same lock under which the new one is written. An unfinished line gets its end first,
 * and lines that are no entries (torn ones) are nobody's parent. A short write is taken back, so
 * that trying again is safe. */

#define LINE_MAX_BYTES ((uint64_t)16 << 20)
#define WHOLE_MAX      ((uint64_t)256 << 20) /* of a longer entry only the beginning is read */
#define CHUNK          ((uint64_t)64 << 10)
#define LINES_BACK     100000 /* lines without an entry after which a new chain begins */

static const char sessions[] = "sessions/--";
static const char null_parent[] = "\"parentId\":null";

/* Find the beginning of the line that ends before `end`, of at most `most` bytes. */
static int line_start(int fd, uint64_t end, uint64_t most, uint64_t *start)
{
	uint64_t at = end, n, step = CHUNK / 16; /* a small first step: most lines are short */
	char *chunk = malloc(CHUNK), *nl = NULL;
	int rv = 0;

	if (chunk == NULL) {
		errno = ENOMEM;
		return -1;
	}
	while (rv == 0 && nl == NULL && at > 0 && end - at <= most) {
		n = MIN(at, step);
		step = CHUNK;
		at -= n;
		rv = sys_read_all(fd, chunk, n, (off_t)at);
		nl = rv == 0 ? memrchr(chunk, '\n', n) : NULL;
	}
	*start = nl != NULL ? at + (uint64_t)(nl - chunk) + 1 : at;
	free(chunk);
	if (rv == 0 && end - *start > most) {
		errno = EFBIG;
		rv = -1;
	}
	return rv;
}

static int read_piece(int fd, uint64_t start, size_t len, char **line)
{
	*line = malloc(len + 1);
	if (*line == NULL) {
		errno = ENOMEM;
		return -1;
	}
	if (sys_read_all(fd, *line, len, (off_t)start) != 0) {
		free(*line);
		*line = NULL;
		return -1;
	}
	(*line)[len] = '\0';
	return 0;
}

int entry_last_line(int fd, uint64_t size, char **line, size_t *len)
{
	uint64_t start;
	char last;

	*line = NULL;
	if (size > 0 && sys_read_all(fd, &last, 1, (off_t)size - 1) != 0)
		return -1;
	if (size > 0 && last == '\n')
		size--;
	if (line_start(fd, size, LINE_MAX_BYTES, &start) != 0)
		return -1;
	*len = (size_t)(size - start);
	return read_piece(fd, start, *len, line);
}

/* Take the text for parentId from a line: null, or "id" exactly as the line has it, since pi
 * takes what JavaScript reads. A session's header has an id too, but is no entry. False: the
 * line is no entry, the one before it may be. */
static bool take_parent(const char *line, size_t len, bool whole, struct buf *out)
{
	struct slice id, type;

	if (whole && !jscan_is_json(line, len))
		return false;
	id = whole ? jscan_member(line, len, "id") : jscan_first(line, len, "id");
	type = whole ? jscan_member(line, len, "type") : jscan_first(line, len, "type");
	if (id.len == 0 || id.s[0] != '"')
		return false;
	if (slice_is(type, "\"session\""))
		buf_adds(out, "null");
	else
		buf_add(out, id.s, id.len);
	return true;
}

static int find_parent(int fd, uint64_t size, struct buf *out)
{
	uint64_t end = size, start;

	for (unsigned i = 0; i < LINES_BACK && end > 0; i++) {
		char *line, last;
		bool found;
		size_t len;

		if (sys_read_all(fd, &last, 1, (off_t)end - 1) != 0)
			return -1;
		end -= last == '\n';
		if (line_start(fd, end, UINT64_MAX, &start) != 0)
			return -1;
		len = end - start > WHOLE_MAX ? CHUNK : (size_t)(end - start);
		if (read_piece(fd, start, len, &line) != 0)
			return -1;
		found = take_parent(line, len, len == end - start, out);
		free(line);
		if (found)
			return 0;
		end = start;
	}
	buf_adds(out, "null");
	return 0;
}

/* Make the line to write: with its parent, its end, and an end for an unfinished line before it. */
static int view_build(int fd, uint64_t size, const char *bytes, size_t len, struct buf *out)
{
	const char *gap = memmem(bytes, len, null_parent, sizeof(null_parent) - 1);
	const char *rest = gap != NULL ? gap + sizeof(null_parent) - 1 : bytes;
	char last = '\n';

	if (size > 0 && sys_read_all(fd, &last, 1, (off_t)size - 1) != 0)
		return -1;
	if (last != '\n')
		buf_addc(out, '\n');
	if (gap != NULL) {
		buf_add(out, bytes, (size_t)(rest - bytes) - 4); /* all but "null" */
		if (find_parent(fd, size, out) != 0)
			return -1;
	}
	buf_add(out, rest, len - (size_t)(rest - bytes));
	if (len == 0 || bytes[len - 1] != '\n')
		buf_addc(out, '\n');
	if (buf_check(out) == 0)
		return 0;
	errno = ENOMEM;
	return -1;
}

/* ---- doing it again */

/* Find the entry; its line, without its end, is data[*at .. *at + *len). */
static bool view_find_entry(const char *data, size_t size, const char *id, size_t *at, size_t *len)
{
	bool found = false;

	for (*at = 0; *at < size; *at += *len + 1) {
		const char *line = data + *at, *nl = memchr(line, '\n', size - *at);

		*len = nl != NULL ? (size_t)(nl - line) : size - *at;
		if (memmem(line, *len, id, strlen(id)) != NULL) {
			json_t *o = json_read_others(line, *len, NULL);
			const char *its = json_get_str(o, "id");

			found = its != NULL && strcmp(its, id) == 0;
			json_decref(o);
		}
		if (found)
			break;
	}
	return found;
}

/* Beginning of the first line that has no end or holds zeros, as after a power cut; `size`:
 * none. */
static size_t cut_line(const char *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const char *nl = memchr(data + at, '\n', size - at);
		size_t len = nl != NULL ? (size_t)(nl - data) - at : size - at;

		if (nl == NULL || memchr(data + at, '\0', len) != NULL)
			return at;
		at += len + 1;
	}
	return size;
}

/* Find the place for the entry and put its bytes into `out`: over the same entry, since bytes
 * dropped by a failed sync look fine in memory, over a cut rest of it, or at the end. 1; -1 and
 * errno. */
static int place_again(int fd, size_t size, const void *bytes, size_t len, const char *id,
		       struct buf *out, size_t *at)
{
	size_t its_len;
	char *data;
	int rv = 1;

	if (read_piece(fd, 0, size, &data) != 0)
		return -1;
	if (view_find_entry(data, size, id, at, &its_len)) {
		rv = buf_add(out, data + *at, MIN(its_len + 1, size - *at)) == 0 ? 1 : -1;
		if (rv < 0)
			errno = ENOMEM;
	} else if ((*at = cut_line(data, size)) < size) {
		rv = view_build(fd, *at, bytes, len, out) == 0 ? 1 : -1;
		if (rv == 1 && !files_cut_of(out->data, data + *at, MIN(out->len, size - *at))) {
			buf_reset(out); /* the line is another program's */
			*at = size;
		}
	}
	if (rv == 1 && *at == size && view_build(fd, size, bytes, len, out) != 0)
		rv = -1;
	free(data);
	return rv;
}

/* ---- appending */

/* 0, or -1 and errno. A short write leaves the file as long as before. */
static int view_write_line(int fd, const struct buf *line, size_t at, size_t size)
{
	ssize_t n;
	int saved;

	do
		n = sys->pwrite(fd, line->data, line->len, (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && (size_t)n < line->len) {
		saved = n == 0 ? EIO : ENOSPC;
		sys->ftruncate(fd, (off_t)size);
		errno = saved;
		n = -1;
	}
	return n < 0 ? -1 : 0;
}

static int append_locked(int fd, const void *bytes, size_t len, const char *id,
			 enum entry_mode mode)
{
	struct buf line;
	struct stat st;
	size_t size, at;
	int rv = -1, saved;

	buf_init(&line, len + LINE_MAX_BYTES);
	if (sys->fstat(fd, &st) != 0)
		goto fail;
	at = size = (size_t)st.st_size;
	if (mode == ENTRY_REDO)
		rv = place_again(fd, size, bytes, len, id, &line, &at);
	else
		rv = view_build(fd, size, bytes, len, &line) == 0 ? 1 : -1;
	if (rv == 1)
		rv = view_write_line(fd, &line, at, size);

fail:
	saved = errno;
	buf_fini(&line);
	errno = saved;
	return rv;
}

/* ---- which file */

/* Is the entry homeless: `path` is a missing or empty session and the entry not its header? pi
 * empties a session without its header, so a file that a person removed or emptied is not begun
 * in the middle. 1, 0, -1 and errno. */
static int homeless(int rootfd, const char *path, const char *bytes, size_t len)
{
	struct stat st;

	if (strncmp(path, sessions, sizeof(sessions) - 1) != 0 ||
	    memmem(bytes, len, null_parent, sizeof(null_parent) - 1) == NULL)
		return 0;
	if (sys->fstatat(rootfd, path, &st, 0) == 0)
		return st.st_size == 0;
	return errno == ENOENT ? 1 : -1;
}

/* "lost/sessions+…": paths have no +, so no two files share a name here. */
static void lost_name(const char *path, char out[FILES_BUF])
{
	snprintf(out, FILES_BUF, "lost/%s", path);
	for (char *p = out + strlen("lost/"); *p != '\0'; p++)
		if (*p == '/')
			*p = '+';
}

/* Append to the file itself, or aside. ENTRY_REDO may write over a cut entry: no O_APPEND. */
static int append_to(int rootfd, const char *path, const void *bytes, size_t len, const char *id,
		     enum entry_mode mode, bool aside)
{
	int fd = files_open(rootfd, path, O_RDWR | O_CREAT | (mode == ENTRY_REDO ? 0 : O_APPEND));
	int rv = -1;

	if (fd < 0)
		return -1;
	if (sys->flock(fd, LOCK_EX | LOCK_NB) == 0)
		rv = append_locked(fd, bytes, len, id, mode);
	if (rv == 0 && aside) /* the checkpoint does not list this file: sync it here */
		rv = sys->fsync(fd);
	files_close(&fd); /* releases the lock too */
	return rv == 0 && aside ? files_sync_parents(rootfd, path) : rv;
}

int entry_append(int rootfd, const char *path, const void *bytes, size_t len, const char *id,
		 enum entry_mode mode)
{
	char aside[FILES_BUF];
	int lost = homeless(rootfd, path, bytes, len), rv;

	if (lost < 0)
		return -1;
	if (lost)
		lost_name(path, aside);
	rv = append_to(rootfd, lost ? aside : path, bytes, len, id, mode, lost);
	return rv == 0 ? lost : rv;
}

int entry_put_aside(int rootfd, const char *path, const void *bytes, size_t len, const char *id)
{
	char aside[FILES_BUF], kept[FILES_BUF];

	lost_name(path, aside);
	return id == NULL ? files_keep(rootfd, aside, bytes, len, kept)
			  : append_to(rootfd, aside, bytes, len, id, ENTRY_NEW, true);
}
