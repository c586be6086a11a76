/* Reserve room of ava's own on a shared disk: files of 1 MB in wal/, allocated and never
 * written, so that each is a megabyte and an inode. On a file system that cannot allocate they
 * are empty: inodes only. Any thread. */
#ifndef JOURNAL_BALLAST_H
#define JOURNAL_BALLAST_H

#include <stdbool.h>

/* To call after a write below the root failed with errno `error`. True: a piece was given up, so
 * try again. errno is `error` afterwards. */
bool ballast_give(int rootfd, int error);
/* On a full disk give up pieces until a start has room for its socket and its log. */
void ballast_ease(int rootfd);
/* Make given-up pieces again: at most `most` MB and a sixteenth of the free room. */
void ballast_keep(int rootfd, unsigned most);

#endif
