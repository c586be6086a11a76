/* Simple Markdown as the HTML of a message of Matrix. Pure. */
#ifndef GATEWAY_MATRIX_HTML_H
#define GATEWAY_MATRIX_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Append `s`: all of it escaped, with **strong**, `code`, code between lines of three backticks,
 * and headings. Returns whether there was anything of that kind; else plain text says as much. */
bool matrix_html(struct buf *out, const char *s, size_t len);

#endif
