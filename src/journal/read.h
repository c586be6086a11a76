/* read.c implements what ava.h offers for reading logs (ava_log_open and so
 * on); it has nothing else to declare. What a root says: read_root.h. */
#ifndef JOURNAL_READ_H
#define JOURNAL_READ_H

#include <ava.h>

#endif
