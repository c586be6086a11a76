/* Reads one HTTP/1.1 answer from bytes as they come: status, the fields that
 * matter, and a body by length, in chunks or until the end. Pure: no socket. */
#ifndef CLIENT_HTTP_READER_H
#define CLIENT_HTTP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;

enum http_reader_state {
	HTTP_READER_HEAD,
	HTTP_READER_BODY_LENGTH, /* `left` bytes to come */
	HTTP_READER_BODY_CLOSE,  /* until the connection ends */
	HTTP_READER_CHUNK_SIZE,
	HTTP_READER_CHUNK_DATA, /* `left` bytes to come */
	HTTP_READER_CHUNK_END,  /* the line end after a chunk */
	HTTP_READER_TRAILER,
	HTTP_READER_DONE,
};

struct http_reader {
	/* Body bytes, decoded. Non-zero stops, and http_reader_feed returns it. */
	int (*sink)(const char *data, size_t len, void *user);
	void *user;
	enum http_reader_state state;
	int status;      /* 0 until the head is there */
	bool keep_alive; /* the connection may be used again when done */
	uint64_t left;
	struct buf line; /* the head, or a line between chunks */
};

void http_reader_init(struct http_reader *r, int (*sink)(const char *data, size_t len, void *user),
		      void *user);
void http_reader_fini(struct http_reader *r);

/* Takes bytes until the answer is done; *used says how many. 0, what the sink
 * returned, AVA_EPROTO or AVA_ENOMEM. */
int http_reader_feed(struct http_reader *r, const char *data, size_t len, size_t *used,
		     struct ava_error *err);
/* The connection ended: 0 when that is how the body ends, else AVA_EPROTO. */
int http_reader_eof(struct http_reader *r, struct ava_error *err);

#endif
