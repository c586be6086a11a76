/* One call from start to its end: what libcurl is told, what it asks. */
#ifndef NET_HTTP_CALL_H
#define NET_HTTP_CALL_H

#include "net/http_pool.h"

/* Options that are the same for all calls of a pool. 0 or AVA_ENOMEM. */
int http_call_easy_init(const struct http_pool *p, CURL *easy);
/* Those of this call; im->easy and im->multi are set. 0 or AVA_ENOMEM. */
int http_call_prepare(struct http_call_impl *im);
/* libcurl is done with it and it is in no list: tell the caller, free it. */
void http_call_finish(struct http_call_impl *im, CURLcode code);
/* The same without libcurl: `err` says why. */
void http_call_fail(struct http_call_impl *im, int rv, const struct ava_error *err);
void http_call_free(struct http_call_impl *im);
/* libcurl cannot go on with it for want of memory; ends it in the next turn. */
void http_call_no_memory(struct http_call_impl *im);
/* struct http_call_impl.due came up. */
void http_call_due(struct deadline *d);

#endif
