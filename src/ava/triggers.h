/* Triggers, which start a standing order from elsewhere (doc/TRIGGERS.md); their verbs are in
 * ava/verbs.h. Loop thread only. */
#ifndef AVA_TRIGGERS_H
#define AVA_TRIGGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;

#define TRIGGER_BODY_MAX ((int64_t)256 << 10)

struct trigger_signature {
	const char *value; /* of the header; "": absent */
	const char *time;  /* Slack's timestamp, "" elsewhere */
	const char *body;
	size_t len;
};
/* Is the body signed with the secret, in the form of "github", "slack" or "plain"? AVA_EDENIED with
 * a sentence; a delivery of Slack's that is over five minutes old is no longer good. */
int trigger_signed(const char *how, const char *secret, const struct trigger_signature *s,
		   int64_t now_ms, struct ava_error *err);

#endif
