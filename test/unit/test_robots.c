/* robots.txt: which rules are ours, and what they say about a path. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/robots.h"

static const struct {
	const char *text, *path;
	bool allowed;
} cases[] = {
	{"", "/", true},
	{"nonsense\n:::\n\xff\xfe", "/a", true},
	{"User-agent: *\nDisallow: /\n", "/", false},
	{"User-agent: *\nDisallow: /\n", "/a?b", false},
	{"User-agent: *\nDisallow: /\n", "/robots.txt", true},
	{"User-agent: *\nDisallow:\n", "/a", true},
	{"user-AGENT:*\ndisallow:/a", "/ab", false},
	{"User-agent: *\r\nDisallow: /a\r\n", "/a", false},
	{"User-agent: *\nDisallow: /a # why\n", "/a", false},
	{"User-agent: *\nDisallow: /a\n", "/b/a", true},
	/* ours before everybody's */
	{"User-agent: *\nDisallow: /\n\nUser-agent: ava\nDisallow: /x\n", "/a", true},
	{"User-agent: *\nDisallow: /\n\nUser-agent: ava\nDisallow: /x\n", "/x", false},
	{"User-agent: Ava/1.0\nDisallow: /\n", "/a", false},
	{"User-agent: avalanche\nDisallow: /\n", "/a", true},
	{"User-agent: java\nUser-agent: ava\nDisallow: /\n", "/a", false},
	{"User-agent: java\nDisallow: /\nUser-agent: other\nAllow: /\n", "/a", true},
	{"User-agent: ava\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: ava\nDisallow: /b",
	 "/b", false},
	/* the longest, then the friendlier */
	{"User-agent: *\nDisallow: /a\nAllow: /a/b\n", "/a/b/c", true},
	{"User-agent: *\nAllow: /a\nDisallow: /a/b\n", "/a/b/c", false},
	{"User-agent: *\nDisallow: /a\nAllow: /a\n", "/a", true},
	{"User-agent: *\nAllow: /a\nDisallow: /a\n", "/a", true},
	/* wildcards */
	{"User-agent: *\nDisallow: /*.pdf$\n", "/x/y.pdf", false},
	{"User-agent: *\nDisallow: /*.pdf$\n", "/x/y.pdf?z", true},
	{"User-agent: *\nDisallow: /*.pdf\n", "/x/y.pdf?z", false},
	{"User-agent: *\nDisallow: /a*b*c\n", "/aXbYbZcW", false},
	{"User-agent: *\nDisallow: /a*b*c$\n", "/aXbYbZcW", true},
	{"User-agent: *\nDisallow: /$\n", "/", false},
	{"User-agent: *\nDisallow: /$\n", "/a", true},
	{"User-agent: *\nDisallow: *\n", "/a", false},
	{"User-agent: *\nDisallow: /*?\n", "/a?b", false},
	{"User-agent: *\nDisallow: /*?\n", "/a", true},
};

TEST(cases)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct robots *r = robots_parse(cases[i].text, strlen(cases[i].text), "ava");

		assert_non_null(r);
		if (robots_allow(r, cases[i].path) != cases[i].allowed)
			fail_msg("%s\n%s", cases[i].text, cases[i].path);
		robots_free(r);
	}
}

TEST(delay)
{
	static const struct {
		const char *text;
		int s;
	} delays[] = {{"User-agent: *\nCrawl-delay: 7\n", 7},
		      {"User-agent: *\nCrawl-delay: 99999\n", 30},
		      {"User-agent: *\nCrawl-delay: 999999999999\n", 0},
		      {"User-agent: *\nCrawl-delay: soon\n", 0},
		      {"User-agent: *\nCrawl-delay: 7\nUser-agent: ava\nAllow: /", 0}};

	for (size_t i = 0; i < ARRAY_LEN(delays); i++) {
		struct robots *r = robots_parse(delays[i].text, strlen(delays[i].text), "ava");

		assert_int_equal(robots_delay(r), delays[i].s);
		robots_free(r);
	}
}

/* Rules made to keep us busy forbid everything instead. */
TEST(bounds)
{
	size_t len = 0, max = 2u << 20;
	char *text = malloc(max), path[4000];
	struct robots *r;

	len += (size_t)snprintf(text, max, "User-agent: *\n");
	while (len < max - 600) {
		len += (size_t)snprintf(text + len, max - len, "Disallow: /*");
		memset(text + len, 'a', 400);
		len += 400;
		len += (size_t)snprintf(text + len, max - len, "b\n");
	}
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = 0;
	r = robots_parse(text, len, "ava");
	assert_false(robots_allow(r, path));
	assert_true(robots_allow(r, "/a"));
	robots_free(r);
	free(text);
}
