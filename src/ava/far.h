/* Verbs that are for another machine of the cluster, and Asks of all machines (cluster/inbox.h). */
#ifndef AVA_FAR_H
#define AVA_FAR_H

struct ava_error;
struct core;
struct core_options;

/* Joins the cluster that the options name; without one nothing is there. The errors of
 * cluster_open and reader_open; AVA_EINVAL: the root is a member, and no cluster is named. */
int far_open(struct core *c, const struct core_options *o, struct ava_error *err);
void far_close(struct core *c);

#endif
