/* One log file, read line by line: what is an event, what is broken, where it
 * stands. Part of ava_read: no loop, no libuv. */
#ifndef JOURNAL_READ_FILE_H
#define JOURNAL_READ_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "journal/query.h"

struct ava_error;
struct query_cover;

struct read_file {
	int fd;                        /* -1: closed */
	const char *path;              /* relative to the root; *borrowed until close* */
	char *data;                    /* owned; bytes [from, to) are not given out yet */
	size_t cap, from, to, scanned; /* no newline in the first `scanned` of them */
	uint64_t offset;               /* in the file, of data[from] */
	uint64_t end;                  /* nothing from here on is read; UINT64_MAX: no end */
	uint64_t clear;                /* the query's literal does not begin before here */
	uint64_t stop;                 /* no line from here on is given; 0: no stop */
	void (*on_block)(size_t bytes, void *user); /* NULL, or told of what was read */
	void *user;
	bool skipping;                 /* inside a line that was over READ_LINE_MAX */
	struct read_file_index *index; /* owned; NULL: every line is looked at */
};

struct read_line { /* borrowed until the next call on its file */
	const char *text;
	size_t len;
	uint64_t offset;
	struct event_view view;
};

#define READ_LINE_MAX ((size_t)64 << 20)

/* 0, or AVA_ENOENT, AVA_EDENIED, AVA_EIO. Reading starts at 0 and, unless
 * `growing`, ends at the size of now. On error *f is closed. */
int read_file_open(struct read_file *f, int rootfd, const char *path, bool growing,
		   struct ava_error *err);
void read_file_close(struct read_file *f); /* accepts a closed one */

/* 1: a wanted line; 0: no whole line is left (read_file_torn: what stands
 * behind the last one); AVA_ECORRUPT: a line that is no event, `err` names
 * path:offset, the next call goes on behind it; other codes: reading failed. */
int read_file_next(struct read_file *f, const struct query *want, struct read_line *line,
		   struct ava_error *err);
/* Leave out what the index of the log says nothing of `want` is in; it is
 * made when `make` and it is missing. `want` is *borrowed until close*. */
void read_file_use_index(struct read_file *f, int rootfd, const struct query *want, bool make);
/* The same with one that is open already, *borrowed until close*. */
void read_file_share_index(struct read_file *f, const struct query_cover *cover,
			   const struct query *want);
const struct query_cover *read_file_cover(const struct read_file *f); /* NULL: it uses none */
/* Go on at the line that begins at `offset`. */
void read_file_seek(struct read_file *f, uint64_t offset);
/* Where a line begins before which every event has an lsn of at most `after`:
 * found by halving, since lsn ascend in a file. 0 when it cannot be told. */
uint64_t read_file_after(const struct read_file *f, uint64_t after);
/* Pass over the rest of this line. 0 (also at the end), or a code. */
int read_file_skip(struct read_file *f, struct ava_error *err);
/* Bytes of an unfinished line at the end, after read_file_next gave 0. */
size_t read_file_torn(const struct read_file *f);

/* Of the first event of the file that can be understood at all; 0: none. */
uint64_t read_file_first_lsn(int rootfd, const char *path);

/* lsn gathered by read_file_last. Zero-initialised is empty; free(v). */
struct read_lsns {
	uint64_t *v;
	size_t n, cap;
};

/* Move to the place where the last `n` wanted lines begin, looking from the
 * end in blocks. *count: how many there are from that place on (at most n),
 * *first: the lsn of the first of them; `lsns`, if not NULL, gets each. A
 * wanted line below `floor_lsn` ends the search early. 0 or a code. */
int read_file_last(struct read_file *f, const struct query *want, uint64_t n, uint64_t floor_lsn,
		   uint64_t *count, uint64_t *first, struct read_lsns *lsns, struct ava_error *err);

#endif
