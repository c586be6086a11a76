/* libcurl's memory: freed blocks are wiped, since request headers with keys
 * pass through them, and its upload buffers, which it keeps until a call is
 * over, can be emptied once the request is out. */
#ifndef NET_HTTP_MEMORY_H
#define NET_HTTP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_UPLOAD_BYTES 16384 /* CURLOPT_UPLOAD_BUFFERSIZE: libcurl's least */

/* curl_global_init with these functions. 0 or AVA_ENOMEM. */
int http_memory_start(void);

/* Is `at` inside an upload buffer that belongs to one transfer alone? */
bool http_memory_is_upload(const void *at);
/* The kernel gets its pages back; it reads as zeroes and stays allocated. */
void http_memory_empty(void *at);

#endif
