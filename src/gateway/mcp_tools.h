/* The offer to MCP clients: tools (mcp_tools.json, as they read it) and resources, each over a verb
 * (ava/verbs.h), and the forms by which a person answers. Pure: JSON in, JSON out; no verb is
 * called or decided here. */
#ifndef GATEWAY_MCP_TOOLS_H
#define GATEWAY_MCP_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/json.h"

struct ava_error;

struct mcp_tool {
	const char *name;
	const char *method, *path; /* of the verb that the tool calls */
	const char *id;            /* the argument that goes into the path; NULL: none */
	bool quotes;               /* the answer is a proposal: a person is asked */
	bool forms;                /* only for clients that show forms */
	bool requests;             /* the verb takes a request_id */
};

/* NULL: no tool of that name, or none for clients without forms. */
const struct mcp_tool *mcp_tool_find(const char *name, bool forms);
/* JSON from here on is a new reference, NULL: no memory. The result of a method that is always the
 * same: our name, tools/list, lists of resources, no prompts. */
json_t *mcp_offered(const char *method, bool forms);

/* A call of a verb. */
struct mcp_verb {
	const char *method, *path;
	char id[64];
	json_t *args; /* a new reference */
};
/* `given` are arguments, NULL: none. `cwd` NULL or "": no folder unless they name one; `request`
 * likewise. AVA_EINVAL with sentences for the model; AVA_ENOMEM: then there is nothing in `out`. */
int mcp_tool_verb(const struct mcp_tool *t, const json_t *given, const char *cwd,
		  const char *request, struct mcp_verb *out, struct ava_error *err);
/* The same by the address of a resource. AVA_ENOENT. */
int mcp_resource_verb(const char *uri, struct mcp_verb *out, struct ava_error *err);
/* "resources", of the answer of GET /runs. */
json_t *mcp_resources(const json_t *runs);

/* A proposal for a model; `next`: the step to take now, NULL: none. */
json_t *mcp_tell_proposal(const json_t *proposal, const char *next);
/* Keep a log's newest events that fit. */
void mcp_cut_events(json_t *logs);

/* The params of elicitation/create by which an Ask (doc/ASKS.md) is answered. NULL also where its
 * text is too large for a form. */
json_t *mcp_form_of_ask(const json_t *ask);
/* "inputRequests" with such params (*taken*). */
json_t *mcp_form_request(const char *key, json_t *params);
/* The body of POST /asks/{id}, a new reference, from the fields of a quote's form; NULL: it was not
 * filled in as it was asked for. */
json_t *mcp_form_confirms(const json_t *content);
/* The same from a response to the form of another Ask; NULL: that is no answer. */
json_t *mcp_form_says(const json_t *ask, const json_t *response);

#endif
