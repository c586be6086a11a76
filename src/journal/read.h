/* The read half of the journal, the archive ava_read: what programs need that
 * read a data root without a daemon. read.c implements ava_log_open, _next,
 * _wait and _close, which ava.h declares; the rest is here. */
#ifndef JOURNAL_READ_H
#define JOURNAL_READ_H

#include <ava.h>

#include "journal/read_root.h"

#endif
