/* The guarded fetcher against a peer that does what it should not: where it connects, what it
 * follows, how much it takes and for how long. Cases 13 to 17 of doc/SECURITY.md; those that need
 * a name server are in test/cli/test_web_dns.sh. */
#include "unit.h"

#include <arpa/inet.h>
#include <ava.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "http_peer.h"
#include "net/web_fetch.h"
#include "net/http_client.h"
#include "os/loop.h"

#define HTML "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=\"ISO-8859-1\"\r\n"

static struct {
	struct os_loop *loop;
	struct http_client *client;
	struct fetcher *fetcher;
	struct peer peer, other;
	struct os_timer *drip;
	struct list *dripping; /* of the peer whose connections get a byte now and then */
	char heads[64][1024];  /* of the requests to either */
	unsigned nheads, most; /* at once: of answers that are held back */
	unsigned held;
	struct peer_conn *holding[64];
	const char *robots; /* NULL: 404 */
	bool hasty;         /* the clock goes a tenth of a second with each turn */
} t;

/* ---- the peer */

struct bits {
	struct buf out;
	unsigned acc, n;
};

static void put_bits(struct bits *b, unsigned value, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		b->acc |= (value >> i & 1u) << b->n;
		if (++b->n == 8) {
			buf_addc(&b->out, (char)b->acc);
			b->acc = b->n = 0;
		}
	}
}

/* A gzip of `runs` times 258 zeros, without its checksum: 13 bits each. */
static void bomb(struct buf *out, size_t runs)
{
	static const char head[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03";
	struct bits b = {0};

	buf_init(&b.out, 16u << 20);
	buf_add(&b.out, head, sizeof(head) - 1);
	put_bits(&b, 3, 3);    /* the last block, fixed codes */
	put_bits(&b, 0x0c, 8); /* literal 0: 00110000 */
	for (size_t i = 0; i < runs; i++)
		put_bits(&b, 0xa3, 13); /* length 285: 11000101, distance 0: 00000 */
	put_bits(&b, 0, 7 + 8);
	*out = b.out;
}

static void send_bomb(struct peer_conn *c, const char *header)
{
	struct buf b;

	bomb(&b, 400000); /* 100 MB out of 650 KB */
	peer_sendf(c, HTML "%s\r\nContent-Length: %zu\r\n\r\n", header, b.len);
	peer_send(c, b.data, b.len);
	buf_fini(&b);
}

/* Blocks that unpack to nothing, 4.5 MB of them. */
static void send_empty_gzip(struct peer_conn *c)
{
	static const char head[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03";
	static char blocks[5000]; /* each 0 0 0 ff ff */

	for (size_t i = 0; i < sizeof(blocks); i++)
		blocks[i] = i % 5 < 3 ? 0 : '\xff';
	peer_sends(c, HTML "Content-Encoding: gzip\r\n\r\n");
	peer_send(c, head, sizeof(head) - 1);
	for (int i = 0; i < 900; i++)
		peer_send(c, blocks, sizeof(blocks));
}

static void send_many(struct peer_conn *c, const char *piece, size_t times)
{
	for (size_t i = 0; i < times; i++)
		peer_sends(c, piece);
}

static void drip_fire(void *user)
{
	LIST_EACH (&t.peer.conns, n, tmp)
		peer_sends(LIST_ENTRY(n, struct peer_conn, node), "x");
	os_timer_set(t.drip, 200);
}

static void release(void)
{
	for (unsigned i = 0; i < t.held; i++)
		peer_sends(t.holding[i], HTML "Content-Length: 2\r\n\r\nok");
	t.held = 0;
}

static void redirect_to(struct peer_conn *c, const char *to)
{
	peer_sendf(c, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", to);
}

static void answer(struct peer_conn *c, const char *head, const char *body, size_t len)
{
	char path[200] = "", to[300];
	int n = 0;

	(void)body, (void)len;
	snprintf(t.heads[t.nheads++ % 64], sizeof(t.heads[0]), "%s", head);
	assert_int_equal(sscanf(head, "GET %199s HTTP/1.1", path), 1);
	if (strcmp(path, "/robots.txt") == 0 && t.robots)
		peer_sends(c, t.robots);
	else if (strcmp(path, "/robots.txt") == 0)
		peer_sends(c, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
	else if (strcmp(path, "/ok") == 0)
		peer_sends(c, HTML "Content-Length: 5\r\n\r\nhello");
	else if (strcmp(path, "/bomb") == 0)
		send_bomb(c, "Content-Encoding: gzip");
	else if (strcmp(path, "/twice") == 0)
		send_bomb(c, "Content-Encoding: gzip, gzip");
	else if (strcmp(path, "/transfer") == 0)
		send_bomb(c, "Transfer-Encoding: gzip");
	else if (strcmp(path, "/nothing") == 0)
		send_empty_gzip(c);
	else if (strcmp(path, "/chunked") == 0) {
		peer_sends(c, HTML "Transfer-Encoding: chunked\r\n\r\n");
		send_many(c, "10\r\n0123456789abcdef\r\n", 200000);
	} else if (strcmp(path, "/lie-long") == 0)
		peer_sends(c, HTML "Content-Length: 99999999999\r\n\r\nx");
	else if (strcmp(path, "/lie-short") == 0) {
		peer_sends(c, HTML "Content-Length: 1000\r\n\r\nshort");
		peer_close(c);
	} else if (strcmp(path, "/drip") == 0) {
		peer_sends(c, HTML "Content-Length: 1000000\r\n\r\n");
		os_timer_set(t.drip, 0);
	} else if (strcmp(path, "/silent") == 0)
		return;
	else if (strcmp(path, "/header") == 0) {
		peer_sends(c, "HTTP/1.1 200 OK\r\nX: ");
		send_many(c, "0123456789abcdef", 65536);
		peer_sends(c, "\r\n\r\n");
	} else if (strcmp(path, "/headers") == 0) {
		peer_sends(c, "HTTP/1.1 200 OK\r\n");
		send_many(c, "X-Some-Header: 0123456789\r\n", 40000);
		peer_sends(c, "\r\n");
	} else if (strcmp(path, "/100") == 0)
		send_many(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 40000);
	else if (strcmp(path, "/switch") == 0)
		peer_sends(c,
			   "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
	else if (strcmp(path, "/old") == 0) {
		peer_sends(c, "<html>no head at all");
		peer_close(c);
	} else if (strcmp(path, "/image") == 0)
		peer_sends(c, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"
			      "Content-Length: 4\r\n\r\nPNG!");
	else if (sscanf(path, "/hop/%d", &n) == 1) {
		snprintf(to, sizeof(to), n > 0 ? "/hop/%d" : "/ok", n - 1);
		redirect_to(c, to);
	} else if (strcmp(path, "/other") == 0) {
		snprintf(to, sizeof(to), "http://127.0.0.1:%d/ok", t.other.port);
		redirect_to(c, to);
	} else if (strcmp(path, "/cookie") == 0 && !strstr(head, "\r\nCookie: seen=1\r\n"))
		peer_sends(c, "HTTP/1.1 302 Found\r\nSet-Cookie: seen=1; Path=/\r\n"
			      "Set-Cookie: x=y; Path=/other\r\n"
			      "Set-Cookie: z=1; Domain=example.com\r\n"
			      "Location: /cookie\r\nContent-Length: 0\r\n\r\n");
	else if (strcmp(path, "/cookie") == 0)
		redirect_to(c, "/ok");
	else if (strncmp(path, "/to/", 4) == 0)
		redirect_to(c, path + 4);
	else if (strcmp(path, "/hold") == 0) {
		t.holding[t.held++] = c;
		t.most = MAX(t.most, t.held);
	} else
		peer_sends(c, "HTTP/1.1 404 No\r\nContent-Type: text/plain\r\n"
			      "Content-Length: 2\r\n\r\nno");
}

/* ---- rig */

static const char *const html[] = {"text/", "application/json", "+xml", NULL};

struct got {
	struct web_fetch f;
	int dones;
	int64_t ms;
};

static void got_done(struct web_fetch *f)
{
	struct got *g = f->user;

	g->dones++;
	g->ms = clock_mono_ms() - g->ms;
}

static void begin(struct got *g, const char *url)
{
	*g = (struct got){.ms = clock_mono_ms()};
	g->f = (struct web_fetch){.url = url, .types = html, .done = got_done, .user = g};
}

static void wait_for(struct got *g)
{
	while (g->dones == 0) {
		test_clock_skip(t.hasty ? 100 : 0);
		os_loop_step(t.loop, t.hasty ? 10 : 1000);
	}
	assert_int_equal(g->dones, 1);
}

static const char *here(const char *path)
{
	static char url[300];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", t.peer.port, path);
	return url;
}

/* One that is over; got.f is to be ended by web_fetch_fini. */
static struct got fetch_url(const char *url)
{
	static struct got g;

	begin(&g, url);
	if (web_fetch_start(t.fetcher, &g.f, NULL) == 0)
		wait_for(&g);
	else
		g.f.fault = FETCH_BAD_URL;
	return g;
}

static void open_fetcher(struct fetcher_options *o)
{
	static char one[40], two[40];
	static const char *const inside[] = {one, two, "169.254.169.254:80", "meta.test:80", NULL};
	struct ava_error err = {0};

	snprintf(one, sizeof(one), "127.0.0.1:%d", t.peer.port);
	snprintf(two, sizeof(two), "127.0.0.1:%d", t.other.port);
	o->inside = o->inside ? o->inside : inside;
	t.fetcher = fetcher_new(t.client, t.loop, o, &err);
	if (!t.fetcher)
		fail_msg("fetcher_new: %s", err.text);
}

static int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.loop = os_loop_new(NULL);
	t.client = http_client_new(t.loop, NULL);
	t.drip = os_timer_new(t.loop, drip_fire, NULL);
	peer_start(&t.peer, t.loop);
	peer_start(&t.other, t.loop);
	t.peer.request = t.other.request = answer;
	return 0;
}

static int teardown(void **state)
{
	fetcher_free(t.fetcher);
	peer_stop(&t.peer);
	peer_stop(&t.other);
	os_timer_free(t.drip);
	http_client_free(t.client);
	os_loop_free(t.loop);
	return 0;
}

/* ---- */

TEST(plain)
{
	struct fetcher_options o = {0};
	struct got g;

	open_fetcher(&o);
	g = fetch_url(here("/ok#part"));
	assert_int_equal(g.f.fault, FETCH_OK);
	assert_int_equal(g.f.status, 200);
	assert_string_equal(g.f.type, "text/html");
	assert_string_equal(g.f.charset, "ISO-8859-1");
	assert_string_equal(g.f.body.data, "hello");
	assert_string_equal(g.f.final_url, here("/ok"));
	assert_non_null(strstr(t.heads[0], "Accept-Encoding: gzip, deflate\r\n"));
	assert_non_null(strstr(t.heads[0], "User-Agent: Mozilla/5.0 (compatible; ava/"));
	assert_null(strstr(t.heads[0], "Cookie"));
	web_fetch_fini(&g.f);
	g = fetch_url(here("/missing"));
	assert_int_equal(g.f.fault, FETCH_OK);
	assert_int_equal(g.f.status, 404);
	web_fetch_fini(&g.f);
	assert_int_equal(t.peer.accepted, 1); /* the connection is kept */
}

/* A cookie is sent back in the fetch that was given it, and in no other. */
TEST(cookies)
{
	struct fetcher_options o = {0};
	struct got g;

	open_fetcher(&o);
	for (unsigned i = 0; i < 6; i += 3) {
		g = fetch_url(here("/cookie"));
		assert_int_equal(g.f.fault, FETCH_OK);
		assert_string_equal(g.f.body.data, "hello");
		assert_int_equal(t.nheads, i + 3);
		assert_null(strstr(t.heads[i], "Cookie"));
		assert_non_null(strstr(t.heads[i + 1], "\r\nCookie: seen=1\r\n"));
		web_fetch_fini(&g.f);
	}
	g = fetch_url(here("/ok"));
	assert_null(strstr(t.heads[6], "Cookie"));
	web_fetch_fini(&g.f);
}

/* As a redirect, with what is left of the fetch. */
TEST(follow)
{
	struct fetcher_options o = {0};
	struct got g;

	open_fetcher(&o);
	begin(&g, here("/cookie"));
	assert_int_equal(web_fetch_start(t.fetcher, &g.f, NULL), 0);
	wait_for(&g);
	assert_int_equal(g.f.hops, 2);
	g.dones = 0;
	assert_int_equal(web_fetch_follow(t.fetcher, &g.f, here("/cookie")), FETCH_OK);
	wait_for(&g);
	assert_int_equal(g.f.fault, FETCH_OK);
	assert_string_equal(g.f.body.data, "hello");
	assert_int_equal(t.nheads, 5); /* its cookie was still there */
	assert_int_equal(web_fetch_follow(t.fetcher, &g.f, "file:///etc/passwd"),
			 FETCH_BAD_REDIRECT);
	assert_int_equal(web_fetch_follow(t.fetcher, &g.f, here("/ok")), FETCH_REDIRECTS);
	web_fetch_fini(&g.f);
}

static const struct {
	const char *path;
	enum web_fetch_fault fault;
} hostile[] = {
	/* case 16 */
	{"/bomb", FETCH_TOO_LARGE},
	{"/twice", FETCH_BROKEN},
	{"/transfer", FETCH_BROKEN},
	{"/nothing", FETCH_TOO_LARGE},
	{"/chunked", FETCH_TOO_LARGE},
	{"/lie-long", FETCH_TOO_LARGE},
	{"/lie-short", FETCH_BROKEN},
	{"/drip", FETCH_TIMEOUT},
	{"/silent", FETCH_TIMEOUT},
	{"/header", FETCH_TOO_LARGE},
	{"/headers", FETCH_TOO_LARGE},
	{"/100", FETCH_TOO_LARGE},
	{"/switch", FETCH_BROKEN},
	{"/old", FETCH_BROKEN},
	{"/image", FETCH_TYPE},
	/* case 15 */
	{"/hop/4", FETCH_OK},
	{"/hop/5", FETCH_REDIRECTS},
	{"/to/http://[::1]/", FETCH_BAD_REDIRECT},
	{"/to/http://127.0.0.1/", FETCH_BAD_REDIRECT},
	{"/to/http://0x7f.1:22/", FETCH_BAD_REDIRECT},
	{"/to///127.0.0.1", FETCH_BAD_REDIRECT},
	{"/to/file:///etc/passwd", FETCH_BAD_REDIRECT},
	{"/to/gopher://127.0.0.1:11211/_x", FETCH_BAD_REDIRECT},
	{"/to/http://localhost/", FETCH_BAD_REDIRECT},
	{"/to/http://169.254.169.254:81/", FETCH_BAD_REDIRECT},
	{"/to/http://me:secret@example.com/", FETCH_BAD_REDIRECT},
};

TEST(hostile)
{
	struct fetcher_options hasty = {.limits = {.slow_s = 2, .total_ms = 4000}},
			       patient = {.limits = {.slow_s = 60, .total_ms = 120000}};

	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		bool times_out = hostile[i].fault == FETCH_TIMEOUT;
		struct got g;

		t.hasty = times_out;
		open_fetcher(times_out ? &hasty : &patient);
		g = fetch_url(here(hostile[i].path));
		if (g.f.fault != hostile[i].fault)
			fail_msg("%s: %s after %d ms", hostile[i].path, web_fetch_class(g.f.fault),
				 (int)g.ms);
		assert_true(g.f.body.cap <= (4u << 20));
		web_fetch_fini(&g.f);
		os_timer_stop(t.drip);
		fetcher_free(t.fetcher);
		t.fetcher = NULL;
	}
	assert_int_equal(t.other.accepted, 0);
}

/* Slow is not only silent: a byte now and then ends before the whole time is over. */
TEST(drip)
{
	struct fetcher_options o = {.limits = {.slow_s = 1, .total_ms = 60000}};
	struct got g;

	t.hasty = true;
	open_fetcher(&o);
	g = fetch_url(here("/drip"));
	assert_int_equal(g.f.fault, FETCH_TIMEOUT);
	assert_true(g.ms < 50000);
	web_fetch_fini(&g.f);
	os_timer_stop(t.drip);
}

/* Redirects to another host: it gets no header that was for the first one. */
TEST(other_host)
{
	struct fetcher_options o = {0};
	struct got g;

	open_fetcher(&o);
	begin(&g, here("/other"));
	g.f.accept = "application/json\r\nX-Evil: 1";
	g.f.language = "de";
	assert_int_equal(web_fetch_start(t.fetcher, &g.f, NULL), 0);
	wait_for(&g);
	assert_int_equal(g.f.fault, FETCH_OK);
	assert_int_equal(t.nheads, 2);
	assert_non_null(strstr(t.heads[0], "Accept-Language: de\r\n"));
	assert_null(strstr(t.heads[0], "\nX-Evil"));
	assert_null(strstr(t.heads[1], "Accept-Language"));
	assert_null(strstr(t.heads[1], "X-Evil"));
	assert_non_null(strstr(t.heads[1], "Host: 127.0.0.1:"));
	web_fetch_fini(&g.f);
}

/* Case 14: whatever a name resolves to. Nothing listens on these ports: an attempt to connect
 * would be told as unreachable, or take its time. */
static const struct {
	const char *row, *url;
} names[] = {
	{"a.test:80:127.0.0.1", "http://a.test/"},
	{"b.test:80:10.0.0.1,192.168.1.1", "http://b.test/"},
	{"c.test:443:[::1]", "https://c.test/"},
	{"d.test:80:[::ffff:127.0.0.1]", "http://d.test/"},
	{"e.test:80:[64:ff9b::7f00:1]", "http://e.test/"},
	{"f.test:80:169.254.169.254", "http://f.test/"},
	{"g.test:80:0.0.0.0", "http://g.test/"},
	{"h.test:80:[fe80::1]", "http://h.test/"},
	{"i.test:80:127.0.0.1,[::1],[fc00::1],224.0.0.1", "http://i.test/"},
	/* allowed by the configuration, but never that */
	{"meta.test:80:169.254.169.254", "http://meta.test/"},
	{"", "http://169.254.169.254/latest/"},
};

TEST(names)
{
	const char *rows[ARRAY_LEN(names) + 1] = {NULL};
	struct fetcher_options o = {.resolve = rows};

	for (size_t i = 0; i < ARRAY_LEN(names) && names[i].row[0]; i++)
		rows[i] = names[i].row;
	open_fetcher(&o);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct got g = fetch_url(names[i].url);

		if (g.f.fault != FETCH_BLOCKED)
			fail_msg("%s: %s", names[i].url, web_fetch_class(g.f.fault));
		web_fetch_fini(&g.f);
	}
}

/* A name that the list has may lead inside, on that port. */
/* The addresses of this machine, in place of libc's: many that are of no network, then two that
 * are public. */
static struct sockaddr_in6 many[100];
static struct ifaddrs mine[102];

int getifaddrs(struct ifaddrs **out)
{
	static struct sockaddr_in v4 = {.sin_family = AF_INET};
	static struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

	inet_pton(AF_INET, "9.9.9.9", &v4.sin_addr);
	inet_pton(AF_INET6, "2620:fe::9", &v6.sin6_addr);
	for (size_t i = 0; i < ARRAY_LEN(mine); i++) {
		mine[i].ifa_next = i + 1 < ARRAY_LEN(mine) ? &mine[i + 1] : NULL;
		mine[i].ifa_addr = i == 100   ? (struct sockaddr *)&v4
				   : i == 101 ? (struct sockaddr *)&v6
					      : (struct sockaddr *)&many[i];
		if (i < 100) {
			many[i].sin6_family = AF_INET6;
			inet_pton(AF_INET6, "fe80::1", &many[i].sin6_addr);
		}
	}
	*out = mine;
	return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
	assert_ptr_equal(all, mine);
}

/* What listens on all interfaces is inside, although its address is public. */
TEST(own)
{
	static const char *const rows[] = {"four.test:80:9.9.9.9", "six.test:80:[2620:fe::9]",
					   NULL};
	struct fetcher_options o = {.resolve = rows, .limits = {.connect_ms = 500}};
	struct got g;

	open_fetcher(&o);
	g = fetch_url("http://four.test/");
	assert_int_equal(g.f.fault, FETCH_BLOCKED);
	web_fetch_fini(&g.f);
	g = fetch_url("http://six.test/");
	assert_int_equal(g.f.fault, FETCH_BLOCKED);
	web_fetch_fini(&g.f);
}

TEST(listed)
{
	char row[60], url[60], entry[60];
	const char *const rows[] = {row, NULL}, *const inside[] = {entry, NULL};
	struct fetcher_options o = {.resolve = rows, .inside = inside};
	struct got g;

	snprintf(row, sizeof(row), "wiki.test:%d:127.0.0.1", t.peer.port);
	snprintf(entry, sizeof(entry), "wiki.test:%d", t.peer.port);
	snprintf(url, sizeof(url), "http://wiki.test:%d/ok", t.peer.port);
	open_fetcher(&o);
	g = fetch_url(url);
	assert_int_equal(g.f.fault, FETCH_OK);
	web_fetch_fini(&g.f);
	assert_int_equal(fetch_url(here("/ok")).f.fault, FETCH_BAD_URL);
}

/* Case 17. */
TEST(proxy)
{
	static const char *const vars[] = {"http_proxy", "all_proxy", "ALL_PROXY", "https_proxy"};
	struct fetcher_options o = {0};
	char proxy[60];
	struct got g;

	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", t.other.port);
	for (size_t i = 0; i < ARRAY_LEN(vars); i++)
		setenv(vars[i], proxy, 1);
	open_fetcher(&o);
	g = fetch_url(here("/ok"));
	for (size_t i = 0; i < ARRAY_LEN(vars); i++)
		unsetenv(vars[i]);
	assert_int_equal(g.f.fault, FETCH_OK);
	assert_int_equal(t.other.accepted, 0);
	web_fetch_fini(&g.f);
}

static const struct {
	const char *robots, *path;
	enum web_fetch_fault fault;
} robots[] = {
	{NULL, "/ok", FETCH_OK},
	{"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\nUser-agent: *\nDisallow: /\n", "/ok",
	 FETCH_ROBOTS},
	{"HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\nUser-agent: *\nDisallow: /no\n", "/ok",
	 FETCH_OK},
	{"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "/ok", FETCH_ROBOTS},
	{"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "/ok", FETCH_OK},
	{"HTTP/1.1 302 Go\r\nLocation: file:///x\r\nContent-Length: 0\r\n\r\n", "/ok",
	 FETCH_BAD_REDIRECT},
	/* of the redirect's own path too */
	{"HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\nUser-agent: *\nDisallow: /ok\n", "/hop/1",
	 FETCH_ROBOTS},
};

TEST(robots)
{
	struct fetcher_options o = {.robots = true};
	struct got flooded;
	TEST_BUF(flood, 1u << 20);

	/* Rules that cannot be read, since their head has no end, forbid. */
	buf_adds(&flood, "HTTP/1.1 200 OK\r\n");
	for (int i = 0; i < 4000; i++)
		buf_adds(&flood, "X-Some-Header: 0123456789\r\n");
	t.robots = flood.data;
	open_fetcher(&o);
	flooded = fetch_url(here("/ok"));
	assert_int_equal(flooded.f.fault, FETCH_TOO_LARGE);
	web_fetch_fini(&flooded.f);
	fetcher_free(t.fetcher);
	o.inside = NULL;

	for (size_t i = 0; i < ARRAY_LEN(robots); i++) {
		struct got g;

		t.nheads = 0;
		t.robots = robots[i].robots;
		open_fetcher(&o);
		g = fetch_url(here(robots[i].path));
		if (g.f.fault != robots[i].fault)
			fail_msg("%zu: %s", i, web_fetch_class(g.f.fault));
		assert_non_null(strstr(t.heads[0], "GET /robots.txt "));
		web_fetch_fini(&g.f);
		if (robots[i].fault == FETCH_OK) { /* asked for once */
			g = fetch_url(here("/ok"));
			assert_int_equal(t.nheads, 3);
			web_fetch_fini(&g.f);
		}
		fetcher_free(t.fetcher);
		t.fetcher = NULL;
		o.inside = NULL;
	}
}

TEST(caps)
{
	struct fetcher_options o = {.per_host = 3, .host_gap_ms = 20};
	struct got g[9];
	int64_t began = clock_mono_ms();
	unsigned left = ARRAY_LEN(g);

	open_fetcher(&o);
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		begin(&g[i], here("/hold"));
		assert_int_equal(web_fetch_start(t.fetcher, &g[i].f, NULL), 0);
	}
	while (left > 0) {
		if (t.held >= MIN(left, 3u))
			release();
		os_loop_step(t.loop, 10);
		left = 0;
		for (size_t i = 0; i < ARRAY_LEN(g); i++)
			left += g[i].dones == 0;
	}
	assert_int_equal(t.most, 3);
	assert_true(clock_mono_ms() - began >= 8 * 20);
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		assert_int_equal(g[i].f.fault, FETCH_OK);
		web_fetch_fini(&g[i].f);
	}
}

/* Stopped while it waits, while it runs, and while robots.txt is on its way. */
TEST(stop)
{
	struct fetcher_options o = {.per_host = 1, .robots = true};
	struct got g[3];

	open_fetcher(&o);
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		begin(&g[i], here("/silent"));
		assert_int_equal(web_fetch_start(t.fetcher, &g[i].f, NULL), 0);
	}
	web_fetch_stop(&g[1].f);
	while (t.nheads < 2)
		os_loop_step(t.loop, 1000);
	web_fetch_stop(&g[0].f);
	while (t.nheads < 3)
		os_loop_step(t.loop, 1000);
	web_fetch_stop(&g[2].f);
	begin(&g[0], "http://example.invalid/");
	assert_int_equal(web_fetch_start(t.fetcher, &g[0].f, NULL), 0);
	os_loop_step(t.loop, 0);
	web_fetch_stop(&g[0].f);
	for (int i = 0; i < 3; i++)
		assert_int_equal(g[i].dones, 0);
	web_fetch_stop(&g[0].f); /* again */
}

/* The whole time, waiting too. */
TEST(late)
{
	struct fetcher_options o = {.per_host = 1};
	struct got g[2];

	open_fetcher(&o);
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		begin(&g[i], here("/silent"));
		g[i].f.wait_ms = 20000;
		assert_int_equal(web_fetch_start(t.fetcher, &g[i].f, NULL), 0);
	}
	test_clock_skip(20000);
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		wait_for(&g[i]);
		assert_int_equal(g[i].f.fault, FETCH_TIMEOUT);
		web_fetch_fini(&g[i].f);
	}
}

TEST(options)
{
	static const char *const bad[] = {"everything", NULL};
	struct fetcher_options o = {.inside = bad};
	struct ava_error err = {0};

	assert_null(fetcher_new(t.client, t.loop, &o, &err));
	assert_int_equal(err.code, AVA_EINVAL);
	assert_non_null(strstr(err.text, "everything"));
	for (int f = FETCH_OK + 1; f <= FETCH_NO_MEMORY; f++)
		assert_true(*web_fetch_class((enum web_fetch_fault)f) &&
			    *web_fetch_sentence((enum web_fetch_fault)f));
}

UNIT_GROUP(.before = setup, .after = teardown);
