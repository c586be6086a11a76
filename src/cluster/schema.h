/* The tables of a cluster (doc/CLUSTER.md), as SQL that people can read: each statement ends with
 * ";" and a line break, and may be run again. */
#ifndef CLUSTER_SCHEMA_H
#define CLUSTER_SCHEMA_H

#define SCHEMA_VERSION 1
extern const char schema_sql[];

#endif
