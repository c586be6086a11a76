/* Entries of session files, which other programs (pi) append to as well. */
#ifndef JOURNAL_ENTRY_H
#define JOURNAL_ENTRY_H

#include <stddef.h>
#include <stdint.h>

enum entry_mode {
	ENTRY_NEW,  /* no entry with this id can be there */
	ENTRY_REDO, /* append only when none is there */
};

/* Under flock: read the id of the file's last entry, put it in the place of
 * null in `"parentId":null`, append the line in one write (a line end is added
 * when `bytes` has none). The file is made when it is absent; but one of
 * sessions/--… only by its header, which has no parent: other entries go to
 * lost/sessions+… then, and 1 is returned. -1 and errno: nothing was written;
 * EWOULDBLOCK: another program holds the lock. */
int entry_append(int rootfd, const char *path, const void *bytes, size_t len, const char *id,
		 enum entry_mode mode);

/* Into lost/ and made durable, an entry or (`id` NULL) a whole file: it cannot be written
 * where it belongs. -1 and errno. */
int entry_put_aside(int rootfd, const char *path, const void *bytes, size_t len, const char *id);

/* The last line of the first `size` bytes, without its \n: what follows the
 * last \n, or, when they end in \n, the line before it. *line is the caller's
 * (free()), NUL-terminated. -1 and errno; EFBIG when it is over 16 MB. */
int entry_last_line(int fd, uint64_t size, char **line, size_t *len);

#endif
