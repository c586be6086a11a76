/* Addresses that are taken and refused, and the proxies of the environment. */
#include "unit.h"

#include <ava.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "http_rig.h"
#include "net/http_target.h"

static void no_env(void)
{
	static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy",
					    "HTTP_PROXY",  "all_proxy",   "ALL_PROXY",
					    "no_proxy",    "NO_PROXY",    "SSL_CERT_FILE"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
}

static const struct {
	const char *url, *made, *host;
	bool loopback;
} good[] = {
	{"https://api.example.com", "https://api.example.com", "api.example.com", false},
	{"https://api.example.com/", "https://api.example.com", "api.example.com", false},
	{"https://host:8443/api/v1//", "https://host:8443/api/v1", "host", false},
	{"HTTPS://Host/x", "https://Host/x", "Host", false},
	{"https://10.0.0.1", "https://10.0.0.1", "10.0.0.1", false},
	{"https://[2001:db8::1]:444", "https://[2001:db8::1]:444", "2001:db8::1", false},
	{"http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", "127.0.0.1", true},
	{"http://127.8.9.10", "http://127.8.9.10", "127.8.9.10", true},
	{"http://0x7f.1", "http://127.0.0.1", "127.0.0.1", true},
	{"http://2130706433:1", "http://127.0.0.1:1", "127.0.0.1", true},
	{"http://[::1]:11434", "http://[::1]:11434", "::1", true},
	{"http://localhost:11434", "http://localhost:11434", "localhost", true},
	{"http://LOCALHOST", "http://LOCALHOST", "LOCALHOST", true},
};

TEST(good)
{
	no_env();
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct http_target t;
		struct ava_error err = {0};
		size_t len = strlen(good[i].made);

		if (http_target_init(&t, good[i].url, &err) != 0)
			fail_msg("%s: %s", good[i].url, err.text);
		if (strncmp(t.url, good[i].made, len) != 0 || t.url[len] == '/')
			fail_msg("%s became %s", good[i].url, t.url);
		assert_string_equal(t.host, good[i].host);
		assert_int_equal(t.loopback, good[i].loopback);
		assert_int_equal(t.tls, strncmp(good[i].made, "https", 5) == 0);
		assert_null(t.proxy);
		http_target_fini(&t);
		assert_null(t.url);
	}
}

static const struct {
	const char *url;
	int rv;
	const char *text;
} bad[] = {
	{NULL, AVA_EINVAL, "is not an address"},
	{"", AVA_EINVAL, "is not an address"},
	{"api.example.com", AVA_EINVAL, "is not an address"},
	{"https://", AVA_EINVAL, "is not an address"},
	{"https://a b", AVA_EINVAL, "is not an address"},
	{"https://host:99999", AVA_EINVAL, "is not an address"},
	{"ftp://host/", AVA_EINVAL, "write https://host, not ftp://"},
	{"file:///etc/passwd", AVA_EINVAL, ""},
	{"https://me:secret@host", AVA_EINVAL, "take the login out"},
	{"https://me@host", AVA_EINVAL, "take the login out"},
	{"https://host/?key=1", AVA_EINVAL, "what follows ? or #"},
	{"https://host/#x", AVA_EINVAL, "what follows ? or #"},
	{"http://api.example.com", AVA_EDENIED, "write https://api.example.com"},
	{"http://127.0.0.1.example.com", AVA_EDENIED, "for loopback only"},
	{"http://localhost.example.com", AVA_EDENIED, "for loopback only"},
	{"http://localhost.", AVA_EDENIED, "for loopback only"},
	{"http://10.0.0.1", AVA_EDENIED, "for loopback only"},
	{"http://0.0.0.0", AVA_EDENIED, "for loopback only"},
	{"http://128.0.0.1", AVA_EDENIED, "for loopback only"},
	{"http://[::2]", AVA_EDENIED, "for loopback only"},
	{"http://[::ffff:10.0.0.1]", AVA_EDENIED, "for loopback only"},
};

TEST(bad)
{
	no_env();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct http_target t;
		struct ava_error err = {0};
		int rv = http_target_init(&t, bad[i].url, &err);

		if (rv != bad[i].rv || !strstr(err.text, bad[i].text))
			fail_msg("%s: %d %s", bad[i].url, rv, err.text);
		assert_null(strstr(err.text, "secret"));
		assert_null(t.url);
		assert_null(t.host);
	}
}

static const struct {
	const char *list, *host;
	bool named;
} none[] = {
	{"", "host", false},
	{"*", "host", true},
	{"host", "host", true},
	{"HOST", "host", true},
	{"other,host", "host", true},
	{"other host", "host", true},
	{" , ,", "host", false},
	{"ost", "host", false},
	{"example.com", "api.example.com", true},
	{".example.com", "api.example.com", true},
	{".example.com", "example.com", true},
	{"example.com", "badexample.com", false},
	{"api.example.com", "example.com", false},
	{"example.com:443", "api.example.com", true},
	{"10.0.0.1", "10.0.0.1", true},
	{"0.0.1", "10.0.0.1", false},
	{"2001:db8::1", "2001:db8::1", true},
	{"[2001:db8::1]", "2001:db8::1", true},
	{".", "host", false},
};

TEST(no_proxy)
{
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (http_target_no_proxy(none[i].list, none[i].host) != none[i].named)
			fail_msg("\"%s\" and %s", none[i].list, none[i].host);
}

static const struct {
	const char *name, *value, *no_proxy, *url;
	const char *proxy;
	int rv;
} proxies[] = {
	{"https_proxy", "http://p.test:3128", "", "https://api.test", "http://p.test:3128", 0},
	{"HTTPS_PROXY", "p.test:3128", "", "https://api.test", "p.test:3128", 0},
	{"all_proxy", "socks5h://p.test", "", "https://api.test", "socks5h://p.test", 0},
	{"https_proxy", "http://10.0.0.1:1", "", "https://api.test", "http://10.0.0.1:1", 0},
	{"https_proxy", "http://p.test:1", "test", "https://api.test", NULL, 0},
	{"https_proxy", "http://p.test:1", "", "http://127.0.0.1:8", NULL, 0},
	{"https_proxy", "http://p.test:1", "", "https://localhost:8", NULL, 0},
	{"all_proxy", "http://p.test:1", "", "http://localhost:8", NULL, 0},
	{"http_proxy", "http://p.test:1", "", "https://api.test", NULL, 0},
	{"https_proxy", "http://p:s3cret@p.test:99999", "", "https://api.test", NULL, AVA_EINVAL},
};

TEST(proxies)
{
	for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
		struct http_target t;
		struct ava_error err = {0};

		no_env();
		setenv(proxies[i].name, proxies[i].value, 1);
		setenv("no_proxy", proxies[i].no_proxy, 1);
		print_message("%s=%s %s\n", proxies[i].name, proxies[i].value, proxies[i].url);
		assert_int_equal(http_target_init(&t, proxies[i].url, &err), proxies[i].rv);
		assert_null(strstr(err.text, "s3cret"));
		if (proxies[i].proxy)
			assert_string_equal(t.proxy, proxies[i].proxy);
		else
			assert_null(t.proxy);
		http_target_fini(&t);
	}
	no_env();
}

/* ---- a call through a proxy */

/* The proxy asks for the other name. */
static int proxy_is_asked_for(const char *host, const char *port, const struct addrinfo *hints,
			      struct addrinfo **out)
{
	assert_string_equal(host, "proxy.test");
	return rig_getaddrinfo("127.0.0.1", port, hints, out);
}

TEST_WITH(through_proxy, rig_setup, rig_teardown)
{
	static const char *const headers[] = {"authorization: Bearer SECRET"};
	struct fixture *f = *state;
	struct http_pool_options o = {.base_url = "https://api.example.test",
				      .ca_file = "/dev/null"};
	struct got g;
	char url[64];

	no_env();
	rig_resolve = proxy_is_asked_for;
	snprintf(url, sizeof(url), "http://proxy.test:%d", f->peer.port);
	setenv("https_proxy", url, 1);
	f->reply = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
	http_pool_free(f->pool);
	f->pool = http_pool_new(f->client, &o, NULL);
	assert_non_null(f->pool);
	got_init(&g, f);
	g.call.headers = headers;
	g.call.nheaders = 1;
	got_run(&g);
	no_env();
	rig_resolve = NULL;
	assert_int_equal(g.rv, AVA_ECONNECT);
	assert_non_null(strstr(g.text, "api.example.test through the proxy in https_proxy"));
	assert_int_equal(g.heads, 0); /* the proxy's answer is not the service's */
	assert_non_null(strstr(f->head, "CONNECT api.example.test:443 HTTP/1.1\r\n"));
	assert_null(strstr(f->head, "SECRET"));
	got_fini(&g);
}
