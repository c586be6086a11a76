/* The line to one MCP server: messages go out and come in, over the pipes of a child process in
 * the sandbox or over HTTP. What stands in them is for whoever made it (tool/mcp.c); nothing that
 * a server sends is trusted here or there.
 *
 * A message over MCP_MESSAGE_MAX ends a process, and over HTTP the answer that it is in. Callbacks
 * come from the loop, never from inside a call into this file; in `message` and `failed` the line
 * may be closed. Loop thread only. */
#ifndef TOOL_MCP_LINK_H
#define TOOL_MCP_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct http_client;
struct mcp_conf;
struct mcp_link;
struct os_loop;
struct rpc;

#define MCP_MESSAGE_MAX (8u << 20) /* bytes of one message */

struct mcp_link_options { /* *copied*; what it points to is borrowed as long as *alive counts it */
	struct os_loop *loop;
	const struct mcp_conf *conf; /* a process, or HTTP, and what it is given */
	const char *const *keep_out; /* of ava's own: none of it is given to a process */
	const char *root;            /* a process has a folder mcp/NAME below it; NULL: none */
	uint64_t least_mb;           /* of its disk that must stay free (tool/trim.h) */
	struct http_client *client;

	void (*message)(const char *text, size_t len, void *user);
	/* The request will have no answer. Over HTTP: its status (0: none came, MCP_NOT_SENT: nor
	 * has it reached the server) and body. */
#define MCP_NOT_SENT (-1)
	void (*failed)(int64_t id, int status, const char *body, size_t len, const char *why,
		       void *user);
	/* A process has ended by itself, or was ended for what it wrote; the line is to be closed.
	 */
	void (*ended)(const char *why, void *user);
	void *user;
	unsigned *alive; /* lines that are not freed yet */
};

/* NULL with a sentence: AVA_ENOENT, AVA_EDENIED, AVA_EUNSUPPORTED (no sandbox), AVA_ENOMEM, … */
struct mcp_link *mcp_link_open(const struct mcp_link_options *o, struct ava_error *err);
/* No callback any more. A process is asked to end and half a second later ended; *alive says when
 * all of it is gone. NULL is fine. */
void mcp_link_close(struct mcp_link *l);

struct mcp_sending {
	/* *borrowed*, with a \n at its end; NULL, over HTTP: a GET, whose answer goes on for ever
	 */
	const char *json;
	size_t len;
	int64_t id;          /* 0: nobody answers it */
	const char *version; /* headers of HTTP; NULL: not sent */
	const char *method, *name;
};
int mcp_link_send(struct mcp_link *l, const struct mcp_sending *s, struct ava_error *err);
/* Over HTTP the answer is not read any more, which a server takes as "cancelled". */
void mcp_link_drop(struct mcp_link *l, int64_t id);
/* A request of the server's: of all that it may ask of a client, a sign of life is given. */
void mcp_link_refuse(struct mcp_link *l, const char *version, const struct rpc *m);
/* The server knows our session no more: the next request has none. false: there was none. */
bool mcp_link_forget(struct mcp_link *l);

#endif
