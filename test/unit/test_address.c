/* Addresses that are of the public network, and URLs that may be fetched: tables. Case 13 of
 * doc/SECURITY.md: every spelling of an address inside is refused before anything is connected. */
#include "unit.h"

#include <arpa/inet.h>
#include <ava.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "net/address.h"

static const struct {
	const char *text;
	enum address_kind kind;
} addresses[] = {
	{"1.1.1.1", ADDRESS_PUBLIC},
	{"9.255.255.255", ADDRESS_PUBLIC},
	{"11.0.0.0", ADDRESS_PUBLIC},
	{"93.184.216.34", ADDRESS_PUBLIC},
	{"100.63.255.255", ADDRESS_PUBLIC},
	{"100.128.0.0", ADDRESS_PUBLIC},
	{"172.15.255.255", ADDRESS_PUBLIC},
	{"172.32.0.0", ADDRESS_PUBLIC},
	{"198.17.255.255", ADDRESS_PUBLIC},
	{"198.20.0.0", ADDRESS_PUBLIC},
	{"223.255.255.255", ADDRESS_PUBLIC},
	{"10.0.0.0", ADDRESS_INSIDE},
	{"10.255.255.255", ADDRESS_INSIDE},
	{"100.64.0.0", ADDRESS_INSIDE},
	{"100.127.255.255", ADDRESS_INSIDE},
	{"127.0.0.1", ADDRESS_INSIDE},
	{"127.255.255.254", ADDRESS_INSIDE},
	{"172.16.0.1", ADDRESS_INSIDE},
	{"172.31.255.255", ADDRESS_INSIDE},
	{"192.168.0.1", ADDRESS_INSIDE},
	{"0.0.0.0", ADDRESS_NEVER},
	{"0.1.2.3", ADDRESS_NEVER},
	{"169.254.169.254", ADDRESS_NEVER},
	{"192.0.0.192", ADDRESS_NEVER}, /* the metadata of another cloud */
	{"168.63.129.16", ADDRESS_NEVER},
	{"168.63.129.17", ADDRESS_PUBLIC},
	{"100.100.100.200", ADDRESS_NEVER},
	{"fd00:ec2::254", ADDRESS_NEVER},
	{"fd20:ce::254", ADDRESS_NEVER},
	{"192.0.2.1", ADDRESS_NEVER},
	{"192.88.99.1", ADDRESS_NEVER},
	{"198.18.0.1", ADDRESS_NEVER},
	{"198.19.255.255", ADDRESS_NEVER},
	{"198.51.100.1", ADDRESS_NEVER},
	{"203.0.113.1", ADDRESS_NEVER},
	{"224.0.0.1", ADDRESS_NEVER},
	{"240.0.0.1", ADDRESS_NEVER},
	{"255.255.255.255", ADDRESS_NEVER},
	{"2606:4700:4700::1111", ADDRESS_PUBLIC},
	{"2001:200::1", ADDRESS_PUBLIC},
	{"2003::1", ADDRESS_PUBLIC},
	{"3fff:1000::1", ADDRESS_PUBLIC},
	{"::1", ADDRESS_INSIDE},
	{"fc00::1", ADDRESS_INSIDE},
	{"fd12:3456::1", ADDRESS_INSIDE},
	{"::", ADDRESS_NEVER},
	{"::127.0.0.1", ADDRESS_NEVER},
	{"::ffff:127.0.0.1", ADDRESS_NEVER},
	{"::ffff:1.1.1.1", ADDRESS_NEVER},
	{"::ffff:169.254.169.254", ADDRESS_NEVER},
	{"64:ff9b::169.254.169.254", ADDRESS_NEVER},
	{"64:ff9b:1::1", ADDRESS_NEVER},
	{"100::1", ADDRESS_NEVER},
	{"2001::1", ADDRESS_NEVER},
	{"2001:1ff::1", ADDRESS_NEVER},
	{"2001:db8::1", ADDRESS_NEVER},
	{"2002:7f00:1::1", ADDRESS_NEVER},
	{"3fff:fff::1", ADDRESS_NEVER},
	{"4000::1", ADDRESS_NEVER},
	{"fe80::1", ADDRESS_NEVER},
	{"fec0::1", ADDRESS_NEVER},
	{"ff02::1", ADDRESS_NEVER},
};

TEST(addresses)
{
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
		const struct sockaddr *sa = (struct sockaddr *)&v4;
		enum address_kind kind;

		if (inet_pton(AF_INET, addresses[i].text, &v4.sin_addr) != 1) {
			assert_int_equal(inet_pton(AF_INET6, addresses[i].text, &v6.sin6_addr), 1);
			sa = (struct sockaddr *)&v6;
		}
		kind = address_judge(sa);
		if (kind != addresses[i].kind)
			fail_msg("%s: %d", addresses[i].text, (int)kind);
	}
}

TEST(other_families)
{
	struct sockaddr_storage sa = {.ss_family = AF_UNIX};

	assert_int_equal(address_judge((struct sockaddr *)&sa), ADDRESS_NEVER);
	sa.ss_family = AF_UNSPEC;
	assert_int_equal(address_judge((struct sockaddr *)&sa), ADDRESS_NEVER);
}

/* Allowed by the configuration in all of these. */
static const char *const inside[] = {"127.0.0.1:8080", "[::1]:9000", "wiki.corp:80", NULL};

static const struct {
	const char *base, *url, *made; /* made NULL: refused with rv */
	int rv;
} urls[] = {
	{NULL, "https://example.com", "https://example.com/", 0},
	{NULL, "HTTPS://Example.COM/A?b=C#d", "https://example.com/A?b=C", 0},
	{NULL, "https://example.com./x", "https://example.com/x", 0},
	{NULL, "https://example.com:443/x", "https://example.com:443/x", 0},
	{NULL, "http://1.1.1.1/", "http://1.1.1.1/", 0},
	{NULL, "http://[2606:4700:4700::1111]/", "http://[2606:4700:4700::1111]/", 0},
	{NULL, "https://example.com/caf\xc3\xa9", "https://example.com/caf%c3%a9", 0},
	{NULL, "https://example.com/a|b", "https://example.com/a|b", 0},
	{NULL, "https://xn--mnchen-3ya.de/", "https://xn--mnchen-3ya.de/", 0},
	{"https://example.com/a/b?c", "d", "https://example.com/a/d", 0},
	{"https://example.com/a/b?c", "/d", "https://example.com/d", 0},
	{"https://example.com/a/b?c", "?d", "https://example.com/a/b?d", 0},
	{"https://example.com/a/b?c", "//other.org/", "https://other.org/", 0},
	{"https://example.com/a/b?c", "http://other.org/", "http://other.org/", 0},
	/* what a person allowed, and only that */
	{NULL, "http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x", 0},
	{NULL, "http://2130706433:8080/x", "http://127.0.0.1:8080/x", 0},
	{NULL, "http://[::1]:9000/", "http://[::1]:9000/", 0},
	{NULL, "http://wiki.corp/", "http://wiki.corp/", 0},
	{NULL, "https://wiki.corp/", NULL, AVA_EDENIED},
	{NULL, "http://127.0.0.1:8081/x", NULL, AVA_EDENIED},
	{NULL, "http://127.0.0.2:8080/x", NULL, AVA_EDENIED},
	{NULL, "http://localhost:8080/", NULL, AVA_EDENIED},
	/* case 13 */
	{NULL, "http://127.0.0.1/", NULL, AVA_EDENIED},
	{NULL, "http://127.1/", NULL, AVA_EDENIED},
	{NULL, "http://127.0.1/", NULL, AVA_EDENIED},
	{NULL, "http://0x7f.1/", NULL, AVA_EDENIED},
	{NULL, "http://0x7f000001/", NULL, AVA_EDENIED},
	{NULL, "http://0177.0.0.1/", NULL, AVA_EDENIED},
	{NULL, "http://017700000001/", NULL, AVA_EDENIED},
	{NULL, "http://2130706433/", NULL, AVA_EDENIED},
	{NULL, "http://0/", NULL, AVA_EDENIED},
	{NULL, "http://0.0.0.0/", NULL, AVA_EDENIED},
	{NULL, "http://%31%32%37.0.0.1/", NULL, AVA_EDENIED},
	{NULL, "http://127.0.0.1./", NULL, AVA_EDENIED},
	{NULL, "http://0x7f%2e1/", NULL, AVA_EDENIED},
	{NULL, "http://%30x7f%2e1/", NULL, AVA_EDENIED},
	{NULL, "http://0x7f%252e1/", NULL, AVA_EINVAL},
	{NULL, "http://127.0.0.1../", NULL, AVA_EINVAL},
	{NULL, "http://[::1]/", NULL, AVA_EDENIED},
	{NULL, "http://[::]/", NULL, AVA_EDENIED},
	{NULL, "http://[0:0:0:0:0:0:0:1]/", NULL, AVA_EDENIED},
	{NULL, "http://[::ffff:127.0.0.1]/", NULL, AVA_EDENIED},
	{NULL, "http://[::ffff:7f00:1]/", NULL, AVA_EDENIED},
	{NULL, "http://[::127.0.0.1]/", NULL, AVA_EDENIED},
	{NULL, "http://[64:ff9b::7f00:1]/", NULL, AVA_EDENIED},
	{NULL, "http://[2002:7f00:1::]/", NULL, AVA_EDENIED},
	{NULL, "http://[fe80::1%25eth0]/", NULL, AVA_EINVAL},
	{NULL, "http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/", NULL, AVA_EINVAL},
	{NULL,
	 "http://127\xe3\x80\x82"
	 "0\xe3\x80\x82"
	 "0\xe3\x80\x82"
	 "1/",
	 NULL, AVA_EINVAL},
	{NULL, "http://localhost/", NULL, AVA_EDENIED},
	{NULL, "http://LOCALHOST./", NULL, AVA_EDENIED},
	{NULL, "http://a.localhost/", NULL, AVA_EDENIED},
	{NULL, "http://169.254.169.254/latest/meta-data/", NULL, AVA_EDENIED},
	{NULL, "http://2852039166/", NULL, AVA_EDENIED},
	{NULL, "http://0xa9fea9fe/", NULL, AVA_EDENIED},
	{NULL, "http://0251.0376.0251.0376/", NULL, AVA_EDENIED},
	{NULL, "http://169.254.43518/", NULL, AVA_EDENIED},
	{NULL, "http://169.16689662/", NULL, AVA_EDENIED},
	{NULL, "http://[::ffff:a9fe:a9fe]/", NULL, AVA_EDENIED},
	{NULL, "http://[64:ff9b::a9fe:a9fe]/", NULL, AVA_EDENIED},
	{NULL, "http://metadata.google.internal/", NULL, AVA_EDENIED},
	{NULL, "http://printer.local/", NULL, AVA_EDENIED},
	{NULL, "http://router/", NULL, AVA_EDENIED},
	{"https://example.com/", "//127.0.0.1", NULL, AVA_EDENIED},
	{"https://example.com/", "http://[::1]/", NULL, AVA_EDENIED},
	/* what is no address of a page */
	{"https://example.com/", "file:///etc/passwd", NULL, AVA_EINVAL},
	{"https://example.com/", "gopher://example.com/", NULL, AVA_EINVAL},
	{"https://example.com/", "javascript:alert(1)", NULL, AVA_EINVAL},
	{NULL, "file:///etc/passwd", NULL, AVA_EINVAL},
	{NULL, "ftp://example.com/", NULL, AVA_EINVAL},
	{NULL, "dict://example.com:11211/", NULL, AVA_EINVAL},
	{NULL, "example.com", NULL, AVA_EINVAL},
	{NULL, "", NULL, AVA_EINVAL},
	{NULL, "https://", NULL, AVA_EINVAL},
	{NULL, "https:///x", NULL, AVA_EDENIED},
	{NULL, "https://example.com:22/", NULL, AVA_EDENIED},
	{NULL, "https://example.com:0/", NULL, AVA_EINVAL},
	{NULL, "https://example.com:99999/", NULL, AVA_EINVAL},
	{NULL, "https://me:secret@example.com/", NULL, AVA_EDENIED},
	{NULL, "http://example.com@127.0.0.1/", NULL, AVA_EDENIED},
	{NULL, "http://example.com\\@127.0.0.1/", NULL, AVA_EINVAL},
	{NULL, "http://example.com\\.evil.org/", NULL, AVA_EINVAL},
	{NULL, "http://exa mple.com/", NULL, AVA_EINVAL},
	{NULL, "http://example.com/a b", NULL, AVA_EINVAL},
	{NULL, "http://example.com/\r\nHost: x", NULL, AVA_EINVAL},
	{NULL, "http://example.com/\t", NULL, AVA_EINVAL},
	{NULL, "http://ok.com%00.evil.org/", NULL, AVA_EINVAL},
	{NULL, "http://ok.com%0d%0a.evil.org/", NULL, AVA_EINVAL},
	{NULL, "http://.example.com/", NULL, AVA_EINVAL},
	{NULL, "http://example.com../", NULL, AVA_EINVAL},
};

TEST(urls)
{
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct address_url base = {0}, u;
		struct ava_error err = {0};
		int rv;

		if (urls[i].base)
			assert_int_equal(address_url_parse(&base, urls[i].base, NULL, NULL, &err),
					 0);
		rv = address_url_parse(&u, urls[i].url, urls[i].base ? &base : NULL, inside, &err);
		if (rv != urls[i].rv || (rv == 0 && strcasecmp(u.text, urls[i].made) != 0))
			fail_msg("%s: %d %s %s", urls[i].url, rv, err.text, rv == 0 ? u.text : "");
		if (rv != 0) {
			assert_true(err.text[0] != 0 && !strchr(err.text, '\n'));
			assert_null(strstr(err.text, "secret"));
			assert_null(u.handle);
		}
		address_url_fini(&u);
		address_url_fini(&base);
	}
}

TEST(long)
{
	char url[ADDRESS_URL_MAX + 10];
	struct address_url u;

	memset(url, 'a', sizeof(url));
	memcpy(url, "http://e.org/", 13);
	url[ADDRESS_URL_MAX] = 0;
	assert_int_equal(address_url_parse(&u, url, NULL, NULL, NULL), 0);
	address_url_fini(&u);
	url[ADDRESS_URL_MAX] = 'a';
	url[ADDRESS_URL_MAX + 1] = 0;
	assert_int_equal(address_url_parse(&u, url, NULL, NULL, NULL), AVA_EINVAL);
	/* a host of 254 letters, in labels */
	memset(url, 'a', 300);
	memcpy(url, "http://", 7);
	for (int i = 0; i < 4; i++)
		url[7 + 50 * (i + 1)] = '.';
	strcpy(url + 7 + 254, "/");
	assert_int_equal(address_url_parse(&u, url, NULL, NULL, NULL), AVA_EINVAL);
}

TEST(entries)
{
	static const char *const good[] = {"127.0.0.1:8080", "[::1]:80", "wiki.corp:443",
					   "10.1.2.3:1", "LOCALHOST:65535"};
	static const char *const bad[] = {
		"",       "127.0.0.1",   "127.0.0.1:", ":80",     "a:b",  "a:0",          "a:99999",
		"a:80/x", "http://a:80", "a b:80",     "me@a:80", "*:80", "10.0.0.0/8:80"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!address_is_entry(good[i]))
			fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (address_is_entry(bad[i]))
			fail_msg("%s is taken", bad[i]);
}

TEST(origin)
{
	struct address_url a, b;
	static const struct {
		const char *url;
		bool same;
	} others[] = {{"https://example.com/b", true},
		      {"https://EXAMPLE.com:443/", true},
		      {"http://example.com/", false},
		      {"https://www.example.com/", false}};

	assert_int_equal(address_url_parse(&a, "https://example.com/a", NULL, NULL, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		assert_int_equal(address_url_parse(&b, others[i].url, NULL, NULL, NULL), 0);
		assert_int_equal(address_same_origin(&a, &b), others[i].same);
		address_url_fini(&b);
	}
	address_url_fini(&a);
}
