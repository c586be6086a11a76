/* The tables of a cluster (doc/CLUSTER.md), as SQL that people can read: each statement ends with
 * ";" and a line break, and may be run again. */
#ifndef CLUSTER_SCHEMA_H
#define CLUSTER_SCHEMA_H

#define SCHEMA_VERSION 1
extern const char schema_sql[];

/* Reasons not to join, for a daemon and for people who ask. */
#define SCHEMA_OTHER                                                                               \
	"the tables are of version %lld and this ava is made for version %d: machines of a "       \
	"cluster have the same version of ava"
#define SCHEMA_NO_FSYNC                                                                            \
	"the server runs with fsync = off and loses what it acknowledged when its machine stops: " \
	"set it to on"
#define SCHEMA_NO_TABLES "the database has no tables of ava yet: make them with `ava cluster init`"
#define SCHEMA_NOT_PRIVATE                                                                         \
	"the connection to the database is neither local nor encrypted: add sslmode=require to "   \
	"AVA_CLUSTER_URL"

#endif
