/* What is taken out, what stays, and known values in every dress. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/redact.h"

/* Tokens are put together from two halves, so that no file of ours looks as
 * if it held a key. */
static const struct {
	const char *a, *b, *c, *out;
	int count;
} cases[] = {
	{"key ", "sk-ant-", "api03-AbCd_ef-0123456789 end", "key [redacted] end", 1},
	{"", "sk-", "proj-abcdefghij0123456789", "[redacted]", 1},
	{"OPENAI=\"", "sk-", "aaaaaaaaaaaaaaaaaaa1\"", "OPENAI=\"[redacted]\"", 1},
	{"class=\"", "sk-", "fading-circle-animation-long\"",
	 "class=\"sk-fading-circle-animation-long\"", 0},
	{"a ta", "sk-", "manager-12345678901234567890", "a task-manager-12345678901234567890", 0},
	{"", "sk-", "short1", "sk-short1", 0},
	{"x=", "ghp_", "0123456789abcdefABCDEF0123456789abcd;", "x=[redacted];", 1},
	{"", "github_pat_", "11ABCDEFG0123456789_abc", "[redacted]", 1},
	{"", "glpat-", "abcdefghij0123456789", "[redacted]", 1},
	{"id ", "AKIA", "IOSFODNN7EXAMPLE.", "id [redacted].", 1},
	{"id ", "AKIA", "IOSFODNN7EXAMPLEX", "id AKIAIOSFODNN7EXAMPLEX", 0},
	{"id ", "AKIA", "IOSFODNN7EXAMPL", "id AKIAIOSFODNN7EXAMPL", 0},
	{"", "AIza", "SyA0123456789abcdefghijklmnopqrstuv", "[redacted]", 1},
	{"", "hf_", "AbCdEfGhIjKlMnOpQrSt012345", "[redacted]", 1},
	{"//registry/:_authToken=", "npm_", "abcdefghij0123456789abcdefghij0123456",
	 "//registry/:_authToken=[redacted]", 1},
	{"", "sk_live_", "51Habcdefghij0123", "[redacted]", 1},
	{"", "SG.", "abcdefghijklmnopqrstuv.0123456789abcdefghijABCDEFGHIJ_-x", "[redacted]", 1},
	{"jwt ", "eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
	 "jwt [redacted]", 1},
	{"DATABASE_URL=postgres://ava:", "s3cret", "@db/x",
	 "DATABASE_URL=postgres://ava:[redacted]@db/x", 1},
	{"git clone https://", "ghp_", "0123456789abcdefABCDEF0123456789abcd:x-oauth-basic@a.b/c",
	 "git clone https://[redacted]@a.b/c", 1},
	{"http://localhost:8080/a:b@c http://u:$PW@h", "", "",
	 "http://localhost:8080/a:b@c http://u:$PW@h", 0},
	{"password: \"", "correct7horse", "\"", "password: \"[redacted]\"", 1},
	{"DB_PASSWORD=", "p4ss.word!x", "\nB=1", "DB_PASSWORD=[redacted]\nB=1", 1},
	{"aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "",
	 "aws_secret_access_key = [redacted]", 1},
	{"{'client-secret' : '", "abcdefg1", "'}", "{'client-secret' : '[redacted]'}", 1},
	{"{\"access_token\": \"", "v1abcdef0123456789", "\"}", "{\"access_token\": \"[redacted]\"}",
	 1},
	{"MY_BOT_TOKEN=", "v1abcdef0123456789", "\n", "MY_BOT_TOKEN=[redacted]\n", 1},
	{"{\"next_page_token\": \"", "v1abcdef0123456789", "\"}",
	 "{\"next_page_token\": \"v1abcdef0123456789\"}", 0},
	{"password = get_password(1), password = cfg.password1; password: short1", "", "",
	 "password = get_password(1), password = cfg.password1; password: short1", 0},
	{"if (password == NULL) secret=\"the quick brown 1\"", "", "",
	 "if (password == NULL) secret=\"the quick brown 1\"", 0},
	{"", "sk_test_", "51Habcdefghij0123", "[redacted]", 1},
	{"", "pplx-", "0123456789abcdefABCDEF0123456789abcdef0123456789", "[redacted]", 1},
	{"id ", "ACCA", "IOSFODNN7EXAMPLE.", "id [redacted].", 1},
	{"https://api.telegram.org/bot", "123456789:", "AAF0123456789abcdefABCDEF0123456_-z/getMe",
	 "https://api.telegram.org/bot123456789:[redacted]/getMe", 1},
	{"TOKEN=", "123456789:", "AAF0123456789abcdefABCDEF0123456_-z",
	 "TOKEN=123456789:[redacted]", 1},
	{"at 12345:", "AAF0123456789abcdefABCDEF0123456_-zz", "",
	 "at 12345:AAF0123456789abcdefABCDEF0123456_-zz", 0},
	{"slack ", "xoxb", "-123456789012-abcdefABCDEF ok", "slack [redacted] ok", 1},
	{"slack ", "xoxb", "-1234", "slack xoxb-1234", 0},
	{"Authorization: ", "Bearer ", "abcDEF123.456-789_x~y+/==\r\n",
	 "Authorization: Bearer [redacted]\r\n", 1},
	{"authorization: ", "bearer ", "abcdefgh12345678", "authorization: bearer [redacted]", 1},
	{"the ", "bearer ", "authentication scheme", "the bearer authentication scheme", 0},
	{"a\n-----BEGIN ", "RSA PRIVATE KEY-----\nMIIE\n", "-----END RSA PRIVATE KEY-----\nb",
	 "a\n[redacted]\nb", 1},
	{"-----BEGIN ", "OPENSSH PRIVATE KEY-----\nb3Bl", "", "[redacted]", 1},
	/* what a page does not end must not take what stands behind the page */
	{"[ava:page 1 u]\n-----BEGIN ", "PRIVATE KEY-----\nMIIE\n",
	 "[ava:end 1]\n[ava:page 2 v]\nb",
	 "[ava:page 1 u]\n[redacted]\n[ava:end 1]\n[ava:page 2 v]\nb", 1},
	{"-----BEGIN ", "PRIVATE KEY-----\nMIIE\n", "[ava:end 1]\n-----END PRIVATE KEY-----\n",
	 "[redacted]\n[ava:end 1]\n-----END PRIVATE KEY-----\n", 1},
	{"-----BEGIN ", "PUBLIC KEY-----\nMIIB\n", "-----END PUBLIC KEY-----",
	 "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", 0},
	{"two ", "ghp_", "0123456789abcdefABCD and glpat-abcdefghij0123456789 end",
	 "two [redacted] and [redacted] end", 2},
	{"", "", "nothing here", "nothing here", 0},
	{"", "", "", "", 0},
};

TEST(patterns)
{
	struct redact *r = redact_new();
	TEST_BUF(b, 1000);
	char in[256];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(in, sizeof(in), "%s%s%s", cases[i].a, cases[i].b, cases[i].c);
		buf_reset(&b);
		assert_int_equal(redact_text(r, &b, in, strlen(in)), cases[i].count);
		assert_string_equal(b.data != NULL ? b.data : "", cases[i].out);
		if (cases[i].count > 0) { /* done once is done */
			snprintf(in, sizeof(in), "%s", cases[i].out);
			buf_reset(&b);
			assert_int_equal(redact_text(r, &b, in, strlen(in)), 0);
		}
	}
	redact_free(r);
}

static const char secret[] = "hunter2-is-my-key";

/* In pieces of any size the same comes out, and never the begin of a secret. */
TEST(live)
{
	static const char text[] = "The key is hunter2-is-my-key, and\nsk-"
				   "ant-api03-AbCd_ef-0123456789 "
				   "end.\n-----BEGIN "
				   "RSA PRIVATE KEY-----\nMIIB abc\n-----END RSA "
				   "PRIVATE KEY-----\n\nfin hunter2-is-my-key";
	struct redact *r = redact_new();
	struct redact_live l;
	TEST_BUF(out, 1000);
	TEST_BUF(want, 1000);

	redact_add(r, secret);
	redact_text(r, &want, text, sizeof(text) - 1);
	redact_live_init(&l);
	for (size_t step = 1; step < sizeof(text); step++) {
		buf_reset(&out);
		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t n = MIN(step, sizeof(text) - 1 - at);

			assert_int_equal(redact_live(r, &l, text + at, n, false, &out), 0);
			assert_true(out.len <= want.len);
			if (out.len > 0)
				assert_memory_equal(out.data, want.data, out.len);
		}
		assert_true(step > 8 || out.len > 50); /* it does not wait for the end */
		assert_int_equal(redact_live(r, &l, "", 0, true, &out), 0);
		assert_string_equal(out.data, want.data);
	}
	redact_live_fini(&l);
	redact_free(r);
}

static int redacted(const struct redact *r, const char *in, const char *want)
{
	TEST_BUF(b, 10000);
	int n;

	n = redact_text(r, &b, in, strlen(in));
	assert_string_equal(b.data, want);
	assert_false(redact_has_known(r, b.data, b.len));
	return n;
}

TEST(known)
{
	struct redact *r = redact_new();

	assert_int_equal(redact_add(r, secret), 0);
	assert_int_equal(redact_add(r, secret), 0); /* twice is once */
	assert_int_equal(redact_add(r, "short"), 0);
	assert_int_equal(redacted(r, "a hunter2-is-my-key b short", "a [redacted] b short"), 1);
	assert_int_equal(
		redacted(r, "xhunter2-is-my-keyhunter2-is-my-keyx", "x[redacted][redacted]x"), 2);
	assert_int_equal(redacted(r, "hunter2-is-my-ke", "hunter2-is-my-ke"), 0);
	assert_true(redact_has_known(r, "..hunter2-is-my-key", 19));
	redact_free(r);
	redact_free(NULL);
}

/* Of two known ones that begin alike the longer goes; one that begins inside
 * a pattern's match and ends after it goes whole. */
TEST(overlap)
{
	struct redact *r = redact_new();

	redact_add(r, "abcdefgh");
	redact_add(r, "abcdefghijkl");
	redact_add(r, "tail9!!more");
	assert_int_equal(redacted(r, "https://abcdefghijkl:x@host", "https://[redacted]@host"), 1);
	assert_int_equal(redacted(r, "x abcdefghijkl y", "x [redacted] y"), 1);
	assert_int_equal(redacted(r,
				  "sk"
				  "-aaaaaaaaaaaaaaaaaaatail9!!more.",
				  "[redacted]."),
			 1);
	redact_free(r);
}

static void base64(const char *s, size_t len, const char *last_two, char *out)
{
	static const char sixty_two[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	for (size_t i = 0; i < len; i += 3) {
		unsigned v = 0;

		for (size_t j = 0; j < 3; j++)
			v = v << 8 | (i + j < len ? (unsigned char)s[i + j] : 0);
		for (int j = 18; j >= 0; j -= 6) {
			unsigned six = v >> j & 63;

			*out++ = six < 62 ? sixty_two[six] : last_two[six - 62];
		}
	}
	*out = '\0';
}

TEST(base64)
{
	static const char key[] = "k\xff\xfe>>>???~~~ey-0123456789"; /* + and / appear */
	struct redact *r = redact_new();
	TEST_BUF(b, 1000);

	redact_add(r, key);
	for (size_t before = 0; before < 7; before++) {
		for (int url = 0; url < 2; url++) {
			char plain[64], text[128];

			snprintf(plain, sizeof(plain), "%.*s%s and more", (int)before, "ABCDEFG",
				 key);
			base64(plain, strlen(plain), url ? "-_" : "+/", text);
			buf_reset(&b);
			assert_int_equal(redact_text(r, &b, text, strlen(text)), 1);
			/* at most two characters of either end are left */
			assert_true(b.len <= strlen(text) - strlen(key) * 8 / 6 + 12);
		}
	}
	redact_free(r);
}

TEST(bounds)
{
	struct redact *r = redact_new();
	TEST_BUF(b, 10);
	int rv = 0, n = 0;

	for (; rv == 0 && n < 1000; n++) {
		char key[32];

		snprintf(key, sizeof(key), "secret-number-%d", n);
		rv = redact_add(r, key);
	}
	assert_int_equal(rv, AVA_ETOOBIG);
	assert_true(n > 30);
	assert_int_equal(redact_text(r, &b, "more than ten bytes", 19), AVA_ETOOBIG);
	redact_free(r);
}

/* Text made to be slow is not: a megabyte of beginnings that lead nowhere. */
TEST(no_square)
{
	static const char *const unit[] = {"sk-", "-----BEGIN ", "github_pat_", "xoxb", "bearer "};
	struct redact *r = redact_new();
	TEST_BUF(out, 2 << 20);
	TEST_BUF(in, 2 << 20);

	for (size_t i = 0; i < ARRAY_LEN(unit); i++) {
		buf_reset(&in);
		buf_reset(&out);
		while (in.len < 1 << 20)
			buf_adds(&in, unit[i]);
		assert_int_equal(redact_text(r, &out, in.data, in.len), 0);
		assert_int_equal(out.len, in.len);
	}
	redact_free(r);
}

static void assert_json(const struct redact *r, int n, const char *in, const char *want)
{
	TEST_BUF(out, 1 << 16);

	assert_int_equal(redact_json(r, &out, in, strlen(in)), n);
	if (n >= 0)
		assert_string_equal(out.len > 0 ? out.data : "", want);
}

TEST(json_stays_json)
{
	struct redact *r = redact_new();

	assert_int_equal(redact_add(r, "se\"cret\nvalue"), 0);
	assert_json(r, 0, "", "");
	assert_json(r, 0, "{\"a\": [1.50, \"\\u0041\"]}", "{\"a\": [1.50, \"\\u0041\"]}");
	/* A key without its end takes the string, not what follows it. */
	assert_json(r, 1, "{\"k\":\"-----BEGIN PRIVATE KEY-----\\nabc\", \"z\":1}",
		    "{\"k\":\"[redacted]\", \"z\":1}");
	/* Written with escapes it is the same secret. */
	assert_json(r, 2, "[\"a se\\\"cret\\nvalue\", {\"se\\u0022cret\\u000avalue\":null}]",
		    "[\"a [redacted]\", {\"[redacted]\":null}]");
	assert_json(r, AVA_EINVAL, "{\"open", NULL);
	assert_json(r, AVA_EINVAL, "[\"\\x\"]", NULL);
	redact_free(r);
}

static void without_memory(long k)
{
	struct redact *r = redact_new();
	TEST_BUF(b, 1000);
	int rv;

	if (r == NULL)
		return;
	rv = redact_add(r, secret);
	assert_true(rv == 0 || rv == AVA_ENOMEM);
	rv = redact_text(r, &b, secret, strlen(secret));
	assert_true(rv >= 0 || rv == AVA_ENOMEM);
	redact_free(r);
}

TEST(out_of_memory)
{
	FAULT_LOOP(k, without_memory(k));
}
