/* A PostgreSQL server of a test's own: in a folder below $TMPDIR, without a password, reached by a
 * Unix socket in that folder only. Nothing is synced: it stands the death of its processes, not of
 * the machine. Started by root, who may not run one, it runs as `nobody`. It ends with the process
 * that started it. What fails is told on stderr. */
#ifndef SUPPORT_PG_SERVER_H
#define SUPPORT_PG_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct pg_server {
	char bin[128]; /* folder of the server's programs */
	char dir[96];  /* data, socket and the server's log, "log" */
	char url[192]; /* for libpq */
	pid_t pid;     /* 0: it does not run */
};

/* Is a server installed, where Debian puts it or in $PG_BIN? */
bool pg_server_there(void);
/* Make the folder and its database, about a second; starts nothing. */
bool pg_server_make(struct pg_server *s);
/* Start it and wait until it takes connections. `options`: NULL, or such as
 * {"-c", "max_connections=5", NULL}. */
bool pg_server_start(struct pg_server *s, const char *const *options);
/* Make a certificate for {"-c", "ssl=on"}, by openssl. */
bool pg_server_certify(const struct pg_server *s);
void pg_server_stop(struct pg_server *s);   /* in order, with its clients sent away */
void pg_server_kill(struct pg_server *s);   /* kill -9 of all its processes */
void pg_server_remove(struct pg_server *s); /* stopped, if it runs; with its folder */

#endif
