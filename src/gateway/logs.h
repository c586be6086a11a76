/* GET /api/v1/logs: questions to the logs (doc/QUERY.md) over HTTP. */
#ifndef GATEWAY_LOGS_H
#define GATEWAY_LOGS_H

struct routes;
struct http_request;

#define LOGS_LIMIT_MAX 1000 /* events an answer has at the most */
#define LOGS_JOBS      2    /* questions at a time; more are told to wait */

/* Reads its query arguments, asks on a thread of the pool and answers. */
void logs_start(struct routes *r, struct http_request *req);

#endif
