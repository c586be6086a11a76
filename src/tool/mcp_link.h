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

struct mcp_link_options { /* *copied*; its pointers stay valid until *alive no longer counts the
			     link */
	struct os_loop *loop;
	const struct mcp_conf *conf; /* a process, or HTTP, and its settings */
	const char *const *keep_out; /* ava's own folders, hidden from a process */
	const char *root;            /* a process has a folder mcp/NAME below it; NULL: none */
	uint64_t least_mb;           /* MB of the disk that must stay free (tool/trim.h) */
	struct http_client *client;

	void (*message)(const char *text, size_t len, void *user);
	/* A request will have no answer. Over HTTP: its status (0: none came, MCP_NOT_SENT: the
	 * request did not reach the server) and body. */
#define MCP_NOT_SENT (-1)
	void (*failed)(int64_t id, int status, const char *body, size_t len, const char *why,
		       void *user);
	/* A process has ended by itself, or is of no use any more: it wrote too much, to us or to
	 * the disk, or reads nothing. Close the link now. */
	void (*ended)(const char *why, void *user);
	void *user;
	unsigned *alive; /* counts links that are not freed yet */
};

/* NULL with a sentence: AVA_ENOENT, AVA_EDENIED, AVA_EUNSUPPORTED (no sandbox), AVA_ENOMEM, … */
struct mcp_link *mcp_link_open(const struct mcp_link_options *o, struct ava_error *err);
/* Close: no callback follows. A process is asked to end and half a second later killed; *alive
 * counts down when all is freed. NULL is fine. */
void mcp_link_close(struct mcp_link *l);

struct mcp_sending {
	/* *borrowed*, with a \n at its end; NULL, over HTTP: a GET, whose answer has no end */
	const char *json;
	size_t len;
	int64_t id;          /* 0: no answer is expected */
	const char *version; /* these three are headers of HTTP; NULL: not sent */
	const char *method, *name;
};
int mcp_link_send(struct mcp_link *l, const struct mcp_sending *s, struct ava_error *err);
/* Stop reading the answer over HTTP, which a server takes as "cancelled". */
void mcp_link_drop(struct mcp_link *l, int64_t id);
/* Answer a server's request: only a ping is granted. */
void mcp_link_refuse(struct mcp_link *l, const char *version, const struct rpc *m);
/* Forget a session that the server no longer knows. false: there was none. */
bool mcp_link_forget(struct mcp_link *l);

#endif
