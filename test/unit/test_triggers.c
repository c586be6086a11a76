/* Signatures of deliveries: those that GitHub and Slack have in their own documents, and what is
 * near them. */
#include "unit.h"

#include <ava.h>
#include <string.h>

#include "ava/orders.h"

static int signed_as(const char *how, const char *secret, const char *value, const char *time,
		     const char *body, int64_t now_s, struct ava_error *err)
{
	const struct trigger_signature s = {value, time, body, strlen(body)};

	*err = (struct ava_error){0};
	return trigger_signed(how, secret, &s, now_s * 1000, err);
}

/* docs.github.com, "Validating webhook deliveries". */
#define HUB_SECRET "It's a Secret to Everybody"
#define HUB_BODY   "Hello, World!"
#define HUB_HEX    "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

/* docs.slack.dev, "Verifying requests from Slack". */
#define SLACK_SECRET "8f742231b10e8888abcd99yyyzzz85a5"
#define SLACK_TIME   "1531420618"
#define SLACK_NOW    1531420618
#define SLACK_BODY                                                                                 \
	"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id="     \
	"G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-" \
	"collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%"         \
	"2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121."           \
	"803a0bc887a14d10d2c447fce8b6703c"
#define SLACK_HEX "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"

TEST(known)
{
	struct ava_error err;

	assert_int_equal(signed_as("github", HUB_SECRET, "sha256=" HUB_HEX, "", HUB_BODY, 0, &err),
			 0);
	assert_int_equal(signed_as("plain", HUB_SECRET, "sha256=" HUB_HEX, "", HUB_BODY, 0, &err),
			 0);
	assert_int_equal(signed_as("slack", SLACK_SECRET, "v0=" SLACK_HEX, SLACK_TIME, SLACK_BODY,
				   SLACK_NOW, &err),
			 0);
	assert_int_equal(signed_as("slack", SLACK_SECRET, "v0=" SLACK_HEX, SLACK_TIME, SLACK_BODY,
				   SLACK_NOW + 300, &err),
			 0);
}

TEST(others)
{
	static const struct {
		const char *how, *secret, *value, *time, *body;
		int64_t now;
		const char *says;
	} rows[] = {
		{"github", HUB_SECRET, "", "", HUB_BODY, 0, "is missing"},
		{"github", HUB_SECRET, HUB_HEX, "", HUB_BODY, 0, "has not the form sha256="},
		{"github", HUB_SECRET, "sha1=" HUB_HEX, "", HUB_BODY, 0, "has not the form"},
		{"github", HUB_SECRET, "sha256=" HUB_HEX "0", "", HUB_BODY, 0, "has not the form"},
		{"github", HUB_SECRET, "sha256=" HUB_HEX, "", "Hello, World?", 0, "is wrong"},
		{"github", "It's a secret to everybody", "sha256=" HUB_HEX, "", HUB_BODY, 0,
		 "is wrong"},
		{"github", "", "sha256=" HUB_HEX, "", HUB_BODY, 0, "is wrong"},
		{"slack", SLACK_SECRET, "sha256=" SLACK_HEX, SLACK_TIME, SLACK_BODY, SLACK_NOW,
		 "has not the form v0="},
		{"slack", SLACK_SECRET, "v0=" SLACK_HEX, "1531420619", SLACK_BODY, SLACK_NOW,
		 "is wrong"},
		{"slack", SLACK_SECRET, "v0=" SLACK_HEX, "", SLACK_BODY, SLACK_NOW, "is wrong"},
		{"slack", SLACK_SECRET, "v0=" SLACK_HEX, SLACK_TIME, SLACK_BODY, SLACK_NOW + 301,
		 "over 5 minutes old"},
		{"slack", SLACK_SECRET, "v0=" SLACK_HEX, SLACK_TIME, SLACK_BODY, SLACK_NOW - 301,
		 "or a clock is wrong"},
	};
	struct ava_error err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (signed_as(rows[i].how, rows[i].secret, rows[i].value, rows[i].time,
			      rows[i].body, rows[i].now, &err) != AVA_EDENIED ||
		    !strstr(err.text, rows[i].says))
			fail_msg("row %zu: \"%s\", not \"%s\"", i, err.text, rows[i].says);
}
