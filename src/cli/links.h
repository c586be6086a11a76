/* Places as "src/a.c:12" in text that is safe to show, and links of them (OSC 8) for terminals that
 * open a file by a click. A link takes no columns: rows are laid out before it is made. */
#ifndef CLI_LINKS_H
#define CLI_LINKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* From now on, places of files below this folder are links; "" or a path that is not absolute:
 * none. */
void links_below(const char *folder);
/* The length of the place at `s`, which it may not be: 0. *path: bytes of its path, or what else
 * stands there that is no place's beginning. */
size_t links_place(const char *s, size_t len, size_t *path, int64_t *line);
/* Write a row, or a part of one that begins a word: its places of regular files, on no way through
 * a link of the file system, are links. Escapes in it are styles of ours. */
void links_write(FILE *f, const char *s, size_t len);

#endif
