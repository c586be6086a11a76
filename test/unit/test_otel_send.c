/* What an answer of a collector means, and the headers it is sent. The requests
 * themselves: test/cli/test_otel.sh, against a collector that is strict. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "ava/otel.h"
#include "base/util.h"
#include "codec/redact.h"

TEST(judged)
{
	static const struct {
		int status;
		const char *after, *date, *body;
		enum channel_end end;
		int64_t after_ms, rejected;
		const char *reason;
	} cases[] = {
		{200, NULL, NULL, "{}", CHANNEL_TAKEN, -1, 0, ""},
		{200, NULL, NULL, "", CHANNEL_TAKEN, -1, 0, ""},
		{202, NULL, NULL, "not JSON", CHANNEL_TAKEN, -1, 0, ""},
		{200, "7", NULL, "{\"partialSuccess\":{}}", CHANNEL_TAKEN, -1, 0, ""},
		{200, NULL, NULL,
		 "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"old\"}}",
		 CHANNEL_TAKEN, -1, 3, "it left out 3 spans: old"},
		{200, NULL, NULL, "{\"partialSuccess\":{\"rejectedSpans\":2}}", CHANNEL_TAKEN, -1,
		 2, "it left out 2 spans"},
		{200, NULL, NULL, "{\"partialSuccess\":{\"rejectedSpans\":\"-3\"}}", CHANNEL_TAKEN,
		 -1, 0, ""},
		{200, NULL, NULL, "{\"partialSuccess\":{\"errorMessage\":\"soon no more\"}}",
		 CHANNEL_TAKEN, -1, 0, "it took all and warns: soon no more"},
		{429, NULL, NULL, "", CHANNEL_LATER, -1, 0, "it answers 429"},
		{429, "3", NULL, "{\"code\":8,\"message\":\"too many\"}", CHANNEL_LATER, 3000, 0,
		 "it answers 429: too many"},
		{503, "Sun, 06 Nov 1994 08:49:47 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "",
		 CHANNEL_LATER, 10000, 0, "it answers 503"},
		{503, "soon", NULL, "", CHANNEL_LATER, -1, 0, "it answers 503"},
		{502, NULL, NULL, "<html>", CHANNEL_LATER, -1, 0, "it answers 502"},
		{504, NULL, NULL, "", CHANNEL_LATER, -1, 0, "it answers 504"},
		{400, "3", NULL, "{\"message\":\"bad\\u001b[31m\"}", CHANNEL_GIVEN_UP, -1, 0,
		 "it answers 400: bad [31m"},
		{401, NULL, NULL, "", CHANNEL_GIVEN_UP, -1, 0, "it answers 401"},
		{404, NULL, NULL, "[]", CHANNEL_GIVEN_UP, -1, 0, "it answers 404"},
		{500, NULL, NULL, "", CHANNEL_GIVEN_UP, -1, 0, "it answers 500"},
		{301, NULL, NULL, "", CHANNEL_GIVEN_UP, -1, 0, "it answers 301, another address"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct otel_answer a;

		print_message("%d %s\n", cases[i].status, cases[i].body);
		otel_judge(cases[i].status, cases[i].after, cases[i].date, 1795248000000,
			   cases[i].body, strlen(cases[i].body), &a);
		assert_int_equal(a.end, cases[i].end);
		assert_int_equal(a.after_ms, cases[i].after_ms);
		assert_int_equal(a.rejected, cases[i].rejected);
		assert_string_equal(a.reason, cases[i].reason);
	}
}

/* However long a stranger speaks. */
TEST(long_message)
{
	static char body[8000];
	struct otel_answer a;
	size_t n = (size_t)snprintf(body, sizeof(body), "{\"message\":\"");

	for (; n < 7000; n += 2)
		memcpy(body + n, "\303\244", 2);
	memcpy(body + n, "\"}", 3);
	otel_judge(400, NULL, NULL, 0, body, strlen(body), &a);
	assert_true(strlen(a.reason) < sizeof(a.reason) - 1);
	assert_int_equal(strncmp(a.reason, "it answers 400: \303\244", 18), 0);
}

struct header_list {
	char text[600];
};

static int add(const char *header, void *user)
{
	struct header_list *l = user;

	strcat(strcat(l->text, header), "|");
	return 0;
}

TEST(headers)
{
	static const struct {
		const char *text, *list; /* NULL: refused */
	} cases[] = {
		{NULL, ""},
		{"", ""},
		{" , ", ""},
		{"a=b", "a: b|"},
		{" x-api-key = s%20e , y=2 ", "x-api-key: s e|y: 2|"},
		{"Authorization=Basic%20YTpi=", "Authorization: Basic YTpi=|"},
		{"a=100%", "a: 100%|"},
		{"a=%zz", "a: %zz|"},
		{"a=", "a: |"},
		{"a", NULL},
		{"=b", NULL},
		{"a b=c", NULL},
		{"a:b=c", NULL},
		{"a=b%0d%0aX: y", NULL},
		{"a=b\nc: d", NULL},
		{"a=%7f", NULL},
		{"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		struct header_list l = {""};
		int rv = otel_headers(cases[i].text, add, &l, &err);

		print_message("%s\n", cases[i].text ? cases[i].text : "(none)");
		assert_int_equal(rv, cases[i].list ? 0 : AVA_EINVAL);
		if (cases[i].list)
			assert_string_equal(l.text, cases[i].list);
		else
			assert_non_null(strstr(err.text, OTEL_HEADERS_NAME ": entry "));
	}
}

TEST(secrets)
{
	static const struct {
		const char *said, *kept;
	} cases[] = {
		{"it is sesame-open", "it is [redacted]"},
		{"Basic YTpiY2RlZg==", "[redacted]"},
		{"YTpiY2RlZg==", "[redacted]"},
		{"in production", "in production"},
	};
	struct redact *r = redact_new();
	struct buf b;

	assert_int_equal(otel_secrets(r, "x-api-key=sesame-open,X-Scope-OrgID=production,"
					 "Authorization=Basic%20YTpiY2RlZg=="),
			 0);
	assert_int_equal(otel_secrets(r, "nonsense"), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		buf_init(&b, 1000);
		assert_true(redact_text(r, &b, cases[i].said, strlen(cases[i].said)) >= 0);
		assert_string_equal(b.data, cases[i].kept);
		buf_fini(&b);
	}
	redact_free(r);
}

TEST(bases)
{
	static const struct {
		const char *endpoint, *base;
	} cases[] = {
		{"http://127.0.0.1:4318", "http://127.0.0.1:4318"},
		{"http://127.0.0.1:4318/", "http://127.0.0.1:4318"},
		{"https://c.example/otlp", "https://c.example/otlp"},
		{"https://c.example/v1/traces", "https://c.example"},
		{"https://c.example/otlp/v1/traces/", "https://c.example/otlp"},
		{"https://c.example/myv1/traces", "https://c.example/myv1/traces"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char base[256];

		otel_base(cases[i].endpoint, base, sizeof(base));
		assert_string_equal(base, cases[i].base);
	}
}
