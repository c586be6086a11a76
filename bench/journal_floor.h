/* What no journal gets below: the same bytes at the same rate, by plain calls
 * in one thread, in an open loop as in journal_load.h. */
#ifndef BENCH_JOURNAL_FLOOR_H
#define BENCH_JOURNAL_FLOOR_H

#include "journal_meter.h"

/* Lines that arrived while the last flush ran go out with the next: one pwrite
 * and one fdatasync into a zero-filled file. A latency counts from the arrival
 * by the plan. */
struct sample floor_flush(const char *dir, double per_second, int64_t duration_us);

/* Each line appended to one of `files` open files, in turn: one pwrite, no
 * sync. What a view for every run costs at the least. */
struct sample floor_write(const char *dir, unsigned files, double per_second, int64_t duration_us);

#endif
