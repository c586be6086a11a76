/* Lines of a JSONL file: whole lines only, a torn tail is told apart. */
#ifndef CODEC_JSONL_H
#define CODEC_JSONL_H

#include <stddef.h>
#include <stdint.h>

/* Next line of [*at, len): sets *line and *line_len (without \n), moves *at
 * past it and returns 1; 0 at the end; -1 when what is left has no \n (a torn
 * tail: *line and *line_len show it, *at is not moved). */
int jsonl_next(const char *data, size_t len, size_t *at, const char **line, size_t *line_len);
/* Its whole lines. */
uint32_t jsonl_count(const char *data, size_t len);

#endif
