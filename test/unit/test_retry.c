/* What becomes of a failed attempt: every class, every form of a wait, every
 * bound; and the words a run ends with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "base/util.h"
#include "provider/retry.h"
#include "provider/told.h"

#define NOW  INT64_C(5000000)
#define WALL INT64_C(1763712000000) /* Fri, 21 Nov 2025 08:00:00 GMT */

static struct retry_plan decide(struct retry *r, struct retry_failure f, int64_t now,
				int64_t deadline, uint64_t chance)
{
	struct retry_when w = {now, WALL, deadline, chance};
	struct retry_plan plan;

	retry_decide(r, &retry_default, &f, &w, &plan);
	return plan;
}

static enum retry_verdict verdict(struct retry_failure f)
{
	struct retry r = {0};

	return decide(&r, f, NOW, INT64_MAX, 7).verdict;
}

static const struct {
	enum reply_class cls;
	int status;
	const char *should;
	enum retry_verdict want;
} class_cases[] = {
	{REPLY_RATE_LIMIT, 429, NULL, RETRY_AGAIN},
	{REPLY_OVERLOADED, 529, NULL, RETRY_AGAIN},
	{REPLY_OVERLOADED, 200, NULL, RETRY_AGAIN}, /* in mid-stream */
	{REPLY_SERVER, 500, NULL, RETRY_AGAIN},
	{REPLY_NETWORK, 0, NULL, RETRY_AGAIN},
	{REPLY_TIMEOUT, 0, NULL, RETRY_AGAIN},
	{REPLY_TRUNCATED, 200, NULL, RETRY_AGAIN},
	{REPLY_PROTOCOL, 200, NULL, RETRY_AGAIN},
	{REPLY_OTHER, 408, NULL, RETRY_AGAIN},
	{REPLY_OTHER, 409, NULL, RETRY_AGAIN},
	{REPLY_OTHER, 429, NULL, RETRY_AGAIN},
	{REPLY_OTHER, 599, NULL, RETRY_AGAIN},
	{REPLY_OTHER, 418, NULL, RETRY_FINAL},
	{REPLY_BAD_REQUEST, 400, NULL, RETRY_FINAL},
	{REPLY_OVERFLOW, 400, NULL, RETRY_FINAL},
	{REPLY_TOO_LARGE, 413, NULL, RETRY_FINAL},
	{REPLY_AUTH, 401, NULL, RETRY_FINAL},
	{REPLY_BILLING, 402, NULL, RETRY_FINAL},
	{REPLY_REFUSED, 403, NULL, RETRY_FINAL},
	{REPLY_NOT_FOUND, 404, NULL, RETRY_FINAL},
	/* the service's own word wins */
	{REPLY_RATE_LIMIT, 429, "false", RETRY_TOLD_NOT},
	{REPLY_SERVER, 500, "False", RETRY_TOLD_NOT},
	{REPLY_BAD_REQUEST, 400, "true", RETRY_AGAIN},
	{REPLY_RATE_LIMIT, 429, "perhaps", RETRY_AGAIN},
	{REPLY_BAD_REQUEST, 400, "", RETRY_FINAL},
};

TEST(classes)
{
	for (size_t i = 0; i < ARRAY_LEN(class_cases); i++) {
		enum retry_verdict got = verdict((struct retry_failure){
			.cls = class_cases[i].cls,
			.status = class_cases[i].status,
			.should_retry = class_cases[i].should,
		});

		if (got != class_cases[i].want)
			fail_msg("case %zu: %d", i, got);
	}
}

static const struct {
	const char *after_ms, *after, *date;
	int64_t want;
} asked_cases[] = {
	{NULL, NULL, NULL, -1},
	{NULL, "7", NULL, 7000},
	{NULL, "0", NULL, 0},
	{NULL, "1.5", NULL, 1500},
	{NULL, "0.25", NULL, 250},
	{NULL, "2.", NULL, 2000},
	{NULL, "1.23456789", NULL, 1234},
	{"250", NULL, NULL, 250},
	{"250", "7", NULL, 250},
	{"12.7", NULL, NULL, 12},
	{"soon", "7", NULL, 7000},
	{"-5", "7", NULL, 7000},
	{NULL, "-7", NULL, -1},
	{NULL, "", NULL, -1},
	{NULL, "7s", NULL, 7000},
	{NULL, "7x", NULL, -1},
	{NULL, "1h7m40.8s.", NULL, 4060800},
	{NULL, "12.5s. Visit", NULL, 12500},
	{NULL, "20 seconds", NULL, 20000},
	{NULL, "2 minutes and more", NULL, 120000},
	{NULL, "350ms", NULL, 350},
	{NULL, "350 milliseconds", NULL, 350},
	{NULL, "1d", NULL, 86400000},
	{"6m0s", NULL, NULL, 360000},
	/* a time, in seconds and in ms */
	{NULL, "1763712036", NULL, 36000},
	{NULL, "1763712036000", NULL, 36000},
	{NULL, "1763711000", NULL, 0},
	{NULL, "2025-11-21T08:00:45Z", NULL, 45000},
	{NULL, ".5", NULL, -1},
	{NULL, "1e3", NULL, -1},
	{NULL, "nan", NULL, -1},
	{NULL, "999999999999999", NULL, 10000000000000 - WALL},
	{NULL, "99999999999999999999999", NULL, -1},
	{NULL, "Fri, 21 Nov 2025 08:00:45 GMT", NULL, 45000},
	{NULL, "Friday, 21-Nov-25 08:00:45 GMT", NULL, 45000},
	{NULL, "Fri Nov 21 08:00:45 2025", NULL, 45000},
	{NULL, "Fri, 21 Nov 2025 07:59:00 GMT", NULL, 0}, /* past */
	/* their clock is an hour ahead of ours: only the distance counts */
	{NULL, "Fri, 21 Nov 2025 09:00:45 GMT", "Fri, 21 Nov 2025 09:00:00 GMT", 45000},
	{NULL, "Fri, 21 Nov 2025 08:00:45 GMT", "yesterday", 45000},
	{NULL, "Fri, 21 Nov 2025 08:00:45 CET", NULL, -1},
	{NULL, "tomorrow", NULL, -1},
};

TEST(asked)
{
	for (size_t i = 0; i < ARRAY_LEN(asked_cases); i++) {
		struct retry_failure f = {
			.after_ms = asked_cases[i].after_ms,
			.after = asked_cases[i].after,
			.date = asked_cases[i].date,
		};
		int64_t got = retry_asked(&f, WALL);

		if (got != asked_cases[i].want)
			fail_msg("case %zu: %lld", i, (long long)got);
	}
}

TEST(dates)
{
	static const struct {
		const char *s;
		int64_t want;
	} cases[] = {
		{"Sun, 06 Nov 1994 08:49:37 GMT", 784111777000},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 784111777000},
		{"Sun Nov  6 08:49:37 1994", 784111777000},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0},
		{"Thu, 29 Feb 2024 23:59:60 GMT", 1709251200000},
		{"Wed, 01 Mar 2000 00:00:00 GMT", 951868800000},
		{"Sun, 06 Nov 1994 24:00:00 GMT", -1},
		{"Sun, 06 Nov 1994 08:60:00 GMT", -1},
		{"Sun, 06 Nov 1994 08:49:37 GMT ", -1},
		{"Sun, 32 Nov 1994 08:49:37 GMT", -1},
		{"Sun, 00 Nov 1994 08:49:37 GMT", -1},
		{"Sun, 06 Nov 1969 08:49:37 GMT", -1},
		{"Sun, 06-Nov 94 08:49:37 GMT", -1},
		{"06 Nov 1994 08:49:37 GMT", -1},
		{"Sun", -1},
		{"Sun, ", -1},
		{"", -1},
	};
	char cut[64];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (told_date(cases[i].s) != cases[i].want)
			fail_msg("%s: %lld", cases[i].s, (long long)told_date(cases[i].s));
	for (size_t i = 0; i < 3; i++) /* a cut date is none */
		for (size_t n = 0; n < strlen(cases[i].s); n++) {
			snprintf(cut, sizeof(cut), "%.*s", (int)n, cases[i].s);
			assert_int_equal(told_date(cut), -1);
		}
}

/* As people read it. WALL is a Friday, 8 in the morning, and this machine stands in Tokyo. */
TEST(told_times)
{
	static const struct {
		const char *s;
		int64_t want_s;
	} cases[] = {
		{"2 hours 10 minutes.", 7800},
		{"2 hours and 10 minutes", 7800},
		{"3 days, 4 hours", 273600},
		{"1 week", 604800},
		{"3pm (Europe/Berlin)", 6 * 3600}, /* an hour ahead of UTC in winter */
		{"8am (America/New_York).", 5 * 3600},
		{"7am (UTC)", 23 * 3600}, /* tomorrow */
		{"15:00 UTC", 7 * 3600},
		{"7pm", 2 * 3600}, /* it is 5 in the afternoon here */
		{"7:30 PM.", 9000},
		{"4pm", 23 * 3600},
		{"12am", 7 * 3600},
		{"5pm", 0}, /* it is that, and perhaps not yet where they are */
		{"4:55pm", 0},
		{"7pm (Nowhere/Land)", 2 * 3600},
		{"2025-11-21T18:40:00Z", 38400},
		{"2025-11-21T18:40:00.5+02:00, they say", 31200},
		{"2025-12-01 at 00:00 UTC", 9 * 86400 + 16 * 3600},
		{"Dec 1st, 2025 9:04 AM", 9 * 86400 + 16 * 3600 + 240},
		{"on Jan 2 at 5pm UTC", 42 * 86400 + 9 * 3600}, /* of the next year */
		{"1 Dec", 9 * 86400 + 7 * 3600},
		{"2025-11-20", 0}, /* past */
		{"1763733600", 6 * 3600},
		{"March", -1},
		{"13pm", -1},
		{"25:00", -1},
		{"5 tries", -1},
		{"Feb 45", -1},
		{"the next time", -1},
	};

	setenv("TZ", "Asia/Tokyo", 1);
	tzset();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t got = told_wait(cases[i].s, WALL);

		if (got != (cases[i].want_s < 0 ? -1 : cases[i].want_s * 1000))
			fail_msg("%s: %lld s", cases[i].s, (long long)got / 1000);
	}
	unsetenv("TZ");
	tzset();
}

/* What is better waited for without a slot: a quota, for longer than two minutes, or than the run
 * has time. */
TEST(parks)
{
	static const struct {
		struct retry_failure f;
		int64_t left_ms;
		bool parks;
	} cases[] = {
		{{.cls = REPLY_RATE_LIMIT, .after = "100"}, INT64_MAX - NOW, false},
		{{.cls = REPLY_RATE_LIMIT, .after = "130"}, INT64_MAX - NOW, true},
		{{.cls = REPLY_OVERLOADED, .after = "7200"}, INT64_MAX - NOW, true},
		{{.cls = REPLY_RATE_LIMIT, .after = "100"}, 90000, true},
		{{.cls = REPLY_RATE_LIMIT, .after = "7200", .should_retry = "false"},
		 INT64_MAX - NOW,
		 true},
		{{.cls = REPLY_RATE_LIMIT, .reset_ms = 7200000}, INT64_MAX - NOW, true},
		{{.cls = REPLY_RATE_LIMIT, .after = "7200", .never = true}, INT64_MAX - NOW, false},
		{{.cls = REPLY_RATE_LIMIT}, 10, false},
		{{.cls = REPLY_SERVER, .after = "7200"}, INT64_MAX - NOW, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct retry r = {0};

		if (decide(&r, cases[i].f, NOW, NOW + cases[i].left_ms, 0).parks != cases[i].parks)
			fail_msg("case %zu", i);
	}
}

/* Without a word of the service: between the base and three times the last. */
TEST(backoff)
{
	struct retry_failure f = {.cls = REPLY_SERVER, .status = 500};

	for (uint64_t seed = 1; seed < 200; seed++) {
		struct retry r = {0};
		int64_t last = retry_default.base_ms, now = NOW;

		for (int i = 0; i < 12; i++) {
			struct retry_plan p =
				decide(&r, f, now, INT64_MAX, seed * 0x9e3779b97f4a7c15u >> i);

			assert_int_equal(p.verdict, RETRY_AGAIN);
			assert_false(p.told);
			assert_in_range(p.wait_ms, 500, MIN(last * 3, 60000));
			last = p.wait_ms;
			now += p.wait_ms;
		}
	}
}

TEST(backoff_reaches_both_ends)
{
	struct retry_failure f = {.cls = REPLY_NETWORK};
	struct retry low = {0}, high = {0};
	struct retry_plan p;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(decide(&low, f, NOW, INT64_MAX, 0).wait_ms, 500);
		p = decide(&high, f, NOW, INT64_MAX, (uint64_t)(MAX(high.last_ms, 500) * 3 - 501));
	}
	assert_int_equal(p.wait_ms, 60000);
}

/* A long wait that the service asks for: another model need not wait. */
TEST(another_model_instead_of_a_wait)
{
	struct retry_failure f = {.cls = REPLY_OVERLOADED, .status = 529, .after = "29"};
	struct retry_plan p;
	struct retry r = {0};

	p = decide(&r, f, NOW, INT64_MAX, 0);
	assert_false(retry_fallback_due(&r, &retry_default, &f, &p, NOW));
	r = (struct retry){0};
	f.after = "30";
	p = decide(&r, f, NOW, INT64_MAX, 0);
	assert_true(retry_fallback_due(&r, &retry_default, &f, &p, NOW));
	f.cls = REPLY_AUTH; /* which no other model mends */
	assert_false(retry_fallback_due(&r, &retry_default, &f, &p, NOW));
}

TEST(told)
{
	struct retry_failure f = {.cls = REPLY_RATE_LIMIT, .status = 429, .after = "20"};
	struct retry r = {0};

	for (uint64_t c = 0; c < 5000; c += 7) {
		struct retry_plan p = decide(&r, f, NOW, INT64_MAX, c);

		assert_true(p.told);
		assert_in_range(p.wait_ms, 20000, 21000); /* never less */
	}
	f.after = "600";
	assert_int_equal(decide(&r, f, NOW, INT64_MAX, 3).verdict, RETRY_AGAIN);
	f.after = "601";
	assert_int_equal(decide(&r, f, NOW, INT64_MAX, 3).verdict, RETRY_TOO_LONG);
	f.after = "0"; /* at once is a stampede */
	r = (struct retry){0};
	assert_in_range(decide(&r, f, NOW, INT64_MAX, 3).wait_ms, 500, 1500);
}

TEST(horizon)
{
	struct retry_failure f = {.cls = REPLY_OVERLOADED, .status = 529};
	struct retry r = {0};
	int64_t now = NOW;
	struct retry_plan p;
	int tries = 0;

	do {
		p = decide(&r, f, now, INT64_MAX, 0x123456789abcdefu * (uint64_t)(tries + 1));
		now += p.wait_ms;
	} while (p.verdict == RETRY_AGAIN && ++tries < 10000);
	assert_int_equal(p.verdict, RETRY_HORIZON);
	assert_true(now - p.wait_ms - NOW <= retry_default.horizon_ms);
	assert_true(now - NOW > retry_default.horizon_ms);
	assert_in_range(tries, 25, 3600);
	assert_int_equal(r.failures, tries + 1);
}

TEST(deadline)
{
	struct retry_failure f = {.cls = REPLY_RATE_LIMIT, .after = "30"};
	struct retry r = {0};

	assert_int_equal(decide(&r, f, NOW, NOW + 30000, 0).verdict, RETRY_LATE);
	assert_int_equal(decide(&r, f, NOW, NOW + 30001, 0).verdict, RETRY_AGAIN);
}

/* Each of these may have been billed. */
TEST(broken)
{
	struct retry r = {0};

	for (int i = 0; i < 4; i++)
		assert_int_equal(decide(&r,
					(struct retry_failure){.cls = i % 2 ? REPLY_PROTOCOL
									    : REPLY_TRUNCATED},
					NOW, INT64_MAX, 0)
					 .verdict,
				 RETRY_AGAIN);
	assert_int_equal(
		decide(&r, (struct retry_failure){.cls = REPLY_SERVER}, NOW, INT64_MAX, 0).verdict,
		RETRY_AGAIN);
	assert_int_equal(
		decide(&r, (struct retry_failure){.cls = REPLY_TRUNCATED}, NOW, INT64_MAX, 0)
			.verdict,
		RETRY_BROKEN);
	assert_int_equal(
		decide(&r, (struct retry_failure){.cls = REPLY_SERVER}, NOW, INT64_MAX, 0).verdict,
		RETRY_AGAIN);
}

/* Where a person waits it is over after a minute, and no wait is long. */
TEST(talk)
{
	struct retry_failure f = {.cls = REPLY_NETWORK};
	struct retry_when w = {NOW, WALL, INT64_MAX, 0x123456789abcdefu};
	struct retry_plan p;
	struct retry r = {0};
	int tries = 0;

	do {
		retry_decide(&r, &retry_talk, &f, &w, &p);
		assert_in_range(p.wait_ms, 500, 10000);
		w.mono_ms += p.wait_ms;
		w.chance *= 7;
	} while (p.verdict == RETRY_AGAIN && ++tries < 1000);
	assert_int_equal(p.verdict, RETRY_HORIZON);
	assert_in_range(w.mono_ms - NOW, 60000, 70000);
	r = (struct retry){0};
	f = (struct retry_failure){.cls = REPLY_RATE_LIMIT, .after = "61"};
	retry_decide(&r, &retry_talk, &f, &w, &p);
	assert_int_equal(p.verdict, RETRY_TOO_LONG);
}

static bool due(struct retry *r, struct retry_failure f, int64_t now, uint64_t chance)
{
	struct retry_plan p = decide(r, f, now, INT64_MAX, chance);

	return retry_fallback_due(r, &retry_default, &f, &p, now);
}

TEST(fallback)
{
	struct retry_failure f = {.cls = REPLY_OVERLOADED, .status = 529};
	struct retry r = {0};

	assert_false(due(&r, f, NOW, 0));
	assert_false(due(&r, f, NOW + 1000, 0));
	assert_false(due(&r, f, NOW + 29499, 0)); /* three, but not for long enough */
	assert_true(due(&r, f, NOW + 29500, 0));
	r = (struct retry){0};
	assert_false(due(&r, f, NOW, 0));
	assert_false(due(&r, f, NOW + 60000, 0)); /* long enough, but only twice */
	assert_true(due(&r, f, NOW + 60001, 0));
	r = (struct retry){0};
	f.should_retry = "false";
	assert_true(due(&r, f, NOW, 0));
	f = (struct retry_failure){.cls = REPLY_RATE_LIMIT, .after = "3600"};
	assert_true(due(&r, f, NOW, 0));
	for (enum reply_class c = REPLY_RATE_LIMIT; c <= REPLY_TRUNCATED; c++) {
		r = (struct retry){0}; /* whatever may be better elsewhere */
		f = (struct retry_failure){.cls = c};
		assert_false(due(&r, f, NOW, 0));
		assert_false(due(&r, f, NOW + 20000, 0));
		assert_true(due(&r, f, NOW + 40000, 0));
	}
	f = (struct retry_failure){.cls = REPLY_AUTH};
	assert_false(due(&r, f, NOW, 0));
}

/* clang-format off */
static const struct {
	struct retry_failure f;
	const char *text;
	const char *has[3];
} word_cases[] = {
	{{.cls = REPLY_AUTH, .status = 401}, "invalid x-api-key", {"anthropic refused the key (401)", "ANTHROPIC_API_KEY", "invalid x-api-key"}},
	{{.cls = REPLY_BILLING, .status = 402}, "", {"cannot pay (402): add credit", NULL}},
	{{.cls = REPLY_REFUSED, .status = 403}, "", {"does not allow this request (403)", NULL}},
	{{.cls = REPLY_NOT_FOUND, .status = 404}, "model: x", {"does not know anthropic/claude-x", "choose another model", "model: x"}},
	{{.cls = REPLY_OVERFLOW, .status = 400},
	 "prompt is too long",
	 {"does not fit into the context of anthropic/claude-x (200000 tokens)", "too long"}},
	{{.cls = REPLY_RATE_LIMIT, .status = 413, .never = true}, "TPM", {"a request of 9000 tokens is more than anthropic takes of this account (6000)", "TPM"}},
	{{.cls = REPLY_ADDRESS, .status = 301}, "it redirects to https://x", {"anthropic is not at https://127.0.0.1:1 (301): set ANTHROPIC_BASE_URL", "it redirects to https://x"}},
	{{.cls = REPLY_WALL, .status = 403}, "Just a moment", {"a page stands in front of anthropic (403): open https://127.0.0.1:1", "Just a moment"}},
	{{.cls = REPLY_TOO_LARGE, .status = 413}, "", {"too large for anthropic (413)", NULL}},
	{{.cls = REPLY_BAD_REQUEST, .status = 400}, "temperature: no", {"refused the request (400): temperature: no", NULL}},
	{{.cls = REPLY_PROTOCOL, .status = 200}, "it sent HTML", {"what answers at https://127.0.0.1:1", "check the address", "it sent HTML"}},
	{{.cls = REPLY_RATE_LIMIT, .after = "3600"}, "", {"limits the rate of requests until 18:40: run again then", "models.fallback"}},
	{{.cls = REPLY_OVERLOADED, .after = "500"}, "", {"is overloaded and the run's time ends before the next attempt, in 50", NULL}},
	{{.cls = REPLY_SERVER, .should_retry = "false"}, "HTTP 500", {"fails and says not to try again", "HTTP 500"}},
	{{.cls = REPLY_NETWORK}, "connection refused", {"cannot be reached after 1 attempt in 5 s", "connection refused"}},
	{{.cls = REPLY_TIMEOUT}, "", {"did not answer in time", NULL}},
	{{.cls = REPLY_TRUNCATED}, "", {"broke off its replies", NULL}},
	{{.cls = REPLY_OTHER, .status = 418}, "teapot", {"fails", "teapot"}},
	{{.cls = REPLY_OTHER}, "its certificate", {"anthropic cannot be called: its certificate"}},
};
/* clang-format on */

TEST(words)
{
	struct retry_words w = {
		.provider = "anthropic",
		.model = "anthropic/claude-x",
		.key_name = "ANTHROPIC_API_KEY",
		.url_name = "ANTHROPIC_BASE_URL",
		.base_url = "https://127.0.0.1:1",
		.context = 200000,
		.back = "18:40",
	};
	char out[300], small[20];

	for (size_t i = 0; i < ARRAY_LEN(word_cases); i++) {
		struct retry r = {0};
		struct retry_plan p = decide(&r, word_cases[i].f, NOW, NOW + 400000, 0);
		struct reply_error e = {
			.never = word_cases[i].f.never, .window = 6000, .prompt = 9000};

		snprintf(e.text, sizeof(e.text), "%s", word_cases[i].text);
		e.window = e.never ? 6000 : 0;
		w.error = &e;
		w.status = word_cases[i].f.status;
		retry_sentence(&r, &p, word_cases[i].f.cls, &w, NOW + 5000, out, sizeof(out));
		for (int k = 0; k < 3 && word_cases[i].has[k]; k++)
			if (!strstr(out, word_cases[i].has[k]))
				fail_msg("case %zu: %s", i, out);
		assert_null(strchr(out, '\n'));
		retry_sentence(&r, &p, word_cases[i].f.cls, &w, NOW, small, sizeof(small));
		assert_true(strlen(small) < sizeof(small)); /* not within a word */
		assert_string_equal(small + strlen(small) - 3, "...");
	}
}

/* A conversation is told what is wrong, and not what a run could do. */
TEST(talk_words)
{
	struct reply_error e = {.text = "refused"};
	struct retry_words w = {
		.provider = "anthropic",
		.model = "m",
		.key_name = "ANTHROPIC_API_KEY",
		.url_name = "ANTHROPIC_BASE_URL",
		.base_url = "https://h:1",
		.error = &e,
		.back = "18:40",
		.talk = true,
	};
	static const struct {
		enum reply_class cls;
		const char *text;
	} trying[] = {
		{REPLY_NETWORK, "anthropic cannot be reached, trying again"},
		{REPLY_OVERLOADED, "anthropic is overloaded, trying again"},
		{REPLY_RATE_LIMIT, "anthropic limits the rate of requests, trying again"},
		{REPLY_TIMEOUT, "anthropic did not answer in time, trying again"},
		{REPLY_SERVER, "anthropic fails, trying again"},
		{REPLY_PROTOCOL, "what answers at https://h:1 does not speak as anthropic does, "
				 "trying again"},
		{REPLY_WALL, "a page stands in front of anthropic, trying again"},
	};
	struct retry_plan plan = {.verdict = RETRY_LATE, .wait_ms = 7000};
	struct retry r = {.failures = 2};
	char out[300];

	for (size_t i = 0; i < ARRAY_LEN(trying); i++) {
		retry_trying(trying[i].cls, &w, 2999, out, sizeof(out));
		assert_string_equal(out, trying[i].text);
	}
	retry_trying(REPLY_OVERLOADED, &w, 20001, out, sizeof(out));
	assert_string_equal(out, "anthropic is overloaded, trying again in 21 s");
	retry_sentence(&r, &plan, REPLY_NETWORK, &w, 0, out, sizeof(out));
	assert_string_equal(out, "anthropic cannot be reached and the turn's time ends before the "
				 "next attempt, in 7 s: raise ava.timeout, or look at this "
				 "machine's network: refused");
	plan.verdict = RETRY_HORIZON;
	retry_sentence(&r, &plan, REPLY_OVERLOADED, &w, 50000, out, sizeof(out));
	assert_string_equal(out, "anthropic is overloaded after 2 attempts in 50 s: say it again "
				 "later, or set models.fallback: refused");
	w.status = 401;
	retry_sentence(&r, &plan, REPLY_AUTH, &w, 0, out, sizeof(out));
	assert_string_equal(out, "anthropic refused the key (401): set a valid ANTHROPIC_API_KEY, "
				 "then `ava restart`, and say it again: refused");
	w.base_url = "http://127.0.0.1:9";
	snprintf(e.text, sizeof(e.text), "cannot connect to 127.0.0.1: refused");
	retry_trying(REPLY_NETWORK, &w, 1000, out, sizeof(out));
	assert_string_equal(out, "nothing answers at http://127.0.0.1:9, trying again");
}

/* A server of this machine that is not there; a window that the refusal told. */
TEST(local_words)
{
	struct reply_error e = {.text = "cannot connect to 127.0.0.1: refused", .window = 4096};
	struct retry_words w = {
		.provider = "local",
		.model = "local/x",
		.key_name = "AVA_LOCAL_KEY",
		.url_name = "AVA_LOCAL_BASE_URL",
		.base_url = "http://127.0.0.1:8093/v1",
		.error = &e,
		.context = 32768,
	};
	struct retry_plan plan = {.verdict = RETRY_LATE};
	struct retry r = {0};
	char out[300];

	retry_sentence(&r, &plan, REPLY_NETWORK, &w, NOW, out, sizeof(out));
	assert_string_equal(out, "nothing answers at http://127.0.0.1:8093/v1: is your model "
				 "server running? cannot connect to 127.0.0.1: refused");
	retry_wait(REPLY_NETWORK, &w, 2001, out, sizeof(out));
	assert_string_equal(out, "Waiting 3 s for local (network): nothing answers at "
				 "http://127.0.0.1:8093/v1: is your model server running?");
	retry_wait(REPLY_OVERLOADED, &w, 3000, out, sizeof(out)); /* theirs are not repeated */
	assert_string_equal(out, "Waiting 3 s for local (overloaded)");
	retry_sentence(&r, &plan, REPLY_OVERFLOW, &w, NOW, out, sizeof(out));
	assert_non_null(strstr(out, "the context of local/x (4096 tokens)"));
}
