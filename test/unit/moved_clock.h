/* The clock of a test. Linked into a program of tests (lib_unit), or preloaded into avad and
 * ava (own_clock in test/cli/lib.sh), clock.c stands in front of libc: what ava, libuv, libcurl
 * and libmicrohttpd read as the time, and how long they wait, is the machine's clock and what
 * the test added to it. Who waits when it moves notices within 10 ms.
 *
 * It goes as the machine's does. A test of a deadline stops it, so that the deadline does not
 * pass by itself on a slow machine, and moves it by hand. While it stands, a wait with a limit
 * (os_loop_step with more than 0) ends by what it waits for or when somebody moves the clock,
 * another thread or a process that was forked; and the journal writes nothing that is not
 * urgent. nanosleep, alarm and the times of files keep the machine's clock. */
#ifndef UNIT_MOVED_CLOCK_H
#define UNIT_MOVED_CLOCK_H

#include <stdint.h>

void test_clock_stop(void);
void test_clock_skip(int64_t ms); /* whether it stands or goes */
void test_clock_go(void);         /* on from what it shows */

#endif
