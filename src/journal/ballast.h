/* Room of ava's own on a disk that others fill: files of 1 MB in wal/, allocated and never
 * written, so that each is a megabyte and an inode. Where the file system cannot allocate they are
 * empty: inodes only. Any thread. */
#ifndef JOURNAL_BALLAST_H
#define JOURNAL_BALLAST_H

#include <stdbool.h>

/* After a write below the root that failed with errno `error`. True: a piece was given up, so try
 * again. errno is `error` then as before. */
bool ballast_give(int rootfd, int error);
/* On a full disk give up what a start needs beside the journal, for its socket and its log. */
void ballast_ease(int rootfd);
/* Make again what was given up, `most` MB and a sixteenth of what is free at the most. */
void ballast_keep(int rootfd, unsigned most);

#endif
