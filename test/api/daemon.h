/* The daemon that a connected program of a test started, ended by the test. */
#ifndef API_DAEMON_H
#define API_DAEMON_H

/* Sends `signo` to the daemon of the root, and waits until it is gone. */
void daemon_end(const char *root, int signo);

#endif
