/* The short way to a tree, for text as it nearly always is. Private to
 * json_read.c. */
#ifndef CODEC_JSON_FAST_H
#define CODEC_JSON_FAST_H

#include <jansson.h>
#include <stddef.h>

/* A new reference to exactly what jansson would have read; NULL: it is for
 * jansson to say what the text is, or what is wrong with it. */
json_t *json_fast(const char *s, size_t len);

#endif
