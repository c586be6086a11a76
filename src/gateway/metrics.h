/* Figures for Prometheus. */
#ifndef GATEWAY_METRICS_H
#define GATEWAY_METRICS_H

struct buf;
struct core;

/* `streams`: open event streams. 0, AVA_ENOMEM. Loop thread. */
int metrics_write(struct core *c, unsigned streams, struct buf *b);

#endif
