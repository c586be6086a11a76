/* The addresses and URLs that may be fetched; see address.h.
 *
 * Addresses: IPv4 by a table of what is not public; IPv6 the other way round, since of it only
 * 2000::/3 was ever given out, less the parts of that which wrap other addresses or document.
 * That drops ::, ::1, v4 in v6 in any form, NAT64, ULA, link-local and multicast at once.
 *
 * URLs: libcurl's parser reads the text, once, and the same handle is fetched later, so no two
 * readers can disagree about it. It also turns other spellings of an IPv4 address (0x7f.1,
 * 2130706433, 127.1, %31%32%37.0.0.1) into the usual one. Judged are the parts that it found.
 * What can fail: the text (AVA_EINVAL, AVA_EDENIED) and memory. */
#include "net/address.h"

#include <arpa/inet.h>
#include <ava.h>
#include <ctype.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"

#define HOST_MAX 253

/* ---- addresses */

#define V4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

static const struct {
	uint32_t net;
	unsigned bits;
	enum address_kind kind;
} v4_ranges[] = {
	{V4(0, 0, 0, 0), 8, ADDRESS_NEVER}, /* this host, in the sense of the kernel */
	/* metadata services of clouds, which hold keys, beside 169.254/16 and 192.0.0/24 */
	{V4(100, 100, 100, 200), 32, ADDRESS_NEVER},
	{V4(168, 63, 129, 16), 32, ADDRESS_NEVER},
	{V4(10, 0, 0, 0), 8, ADDRESS_INSIDE},
	{V4(100, 64, 0, 0), 10, ADDRESS_INSIDE},
	{V4(127, 0, 0, 0), 8, ADDRESS_INSIDE},
	{V4(169, 254, 0, 0), 16, ADDRESS_NEVER},
	{V4(172, 16, 0, 0), 12, ADDRESS_INSIDE},
	{V4(192, 0, 0, 0), 24, ADDRESS_NEVER},
	{V4(192, 0, 2, 0), 24, ADDRESS_NEVER},
	{V4(192, 88, 99, 0), 24, ADDRESS_NEVER},
	{V4(192, 168, 0, 0), 16, ADDRESS_INSIDE},
	{V4(198, 18, 0, 0), 15, ADDRESS_NEVER},
	{V4(198, 51, 100, 0), 24, ADDRESS_NEVER},
	{V4(203, 0, 113, 0), 24, ADDRESS_NEVER},
	{V4(224, 0, 0, 0), 3, ADDRESS_NEVER}, /* multicast, reserved, broadcast */
};

static enum address_kind judge_v4(uint32_t addr)
{
	for (size_t i = 0; i < ARRAY_LEN(v4_ranges); i++)
		if ((addr ^ v4_ranges[i].net) >> (32 - v4_ranges[i].bits) == 0)
			return v4_ranges[i].kind;
	return ADDRESS_PUBLIC;
}

/* The parts of 2000::/3 that are not public. */
static const struct {
	uint8_t net[4];
	unsigned bits;
} v6_ranges[] = {
	{{0x20, 0x01, 0x00, 0x00}, 23}, /* IETF protocols, among them Teredo, which wraps v4 */
	{{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documents */
	{{0x20, 0x02, 0x00, 0x00}, 16}, /* 6to4 wraps v4 */
	{{0x3f, 0xff, 0x00, 0x00}, 20}, /* documents */
};

/* Metadata services of clouds, which hold keys: fd00:ec2::254, fd20:ce::254, fd00:42::42. */
static const uint8_t v6_metadata[][4] = {
	{0xfd, 0x00, 0x0e, 0xc2}, {0xfd, 0x20, 0x00, 0xce}, {0xfd, 0x00, 0x00, 0x42}};

static uint32_t first_32(const uint8_t *a)
{
	return V4(a[0], a[1], a[2], a[3]);
}

static enum address_kind judge_v6(const uint8_t *a)
{
	static const uint8_t loopback[16] = {[15] = 1};

	for (size_t i = 0; i < ARRAY_LEN(v6_metadata); i++)
		if (memcmp(a, v6_metadata[i], 4) == 0)
			return ADDRESS_NEVER;
	if (memcmp(a, loopback, 16) == 0 || (a[0] & 0xfe) == 0xfc)
		return ADDRESS_INSIDE;
	if ((a[0] & 0xe0) != 0x20)
		return ADDRESS_NEVER;
	for (size_t i = 0; i < ARRAY_LEN(v6_ranges); i++)
		if ((first_32(a) ^ first_32(v6_ranges[i].net)) >> (32 - v6_ranges[i].bits) == 0)
			return ADDRESS_NEVER;
	return ADDRESS_PUBLIC;
}

enum address_kind address_judge(const struct sockaddr *sa)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (sa->sa_family == AF_INET) {
		memcpy(&v4, sa, sizeof(v4));
		return judge_v4(ntohl(v4.sin_addr.s_addr));
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(&v6, sa, sizeof(v6));
		return judge_v6(v6.sin6_addr.s6_addr);
	}
	return ADDRESS_NEVER;
}

/* ---- the list of services that a person allowed */

bool address_is_listed(const char *const *inside, const struct address_url *u)
{
	for (size_t i = 0; inside && inside[i]; i++) {
		const char *entry = inside[i], *colon = strrchr(entry, ':');
		size_t len = colon ? (size_t)(colon - entry) : 0;

		if (len > 2 && entry[0] == '[' && entry[len - 1] == ']') {
			entry++;
			len -= 2;
		}
		if (len > 0 && strlen(u->host) == len && strncasecmp(entry, u->host, len) == 0 &&
		    strtoul(colon + 1, NULL, 10) == u->port)
			return true;
	}
	return false;
}

bool address_is_entry(const char *entry)
{
	char text[ADDRESS_URL_MAX];
	const char *colon = strrchr(entry, ':');
	const char *const list[] = {entry, NULL};
	struct address_url u;
	bool is;

	if (!colon || !isdigit((unsigned char)colon[1]) ||
	    (size_t)snprintf(text, sizeof(text), "http://%s/", entry) >= sizeof(text))
		return false;
	is = address_url_parse(&u, text, NULL, list, NULL) == 0 && address_is_listed(list, &u) &&
	     strcmp(strchr(u.text + strlen("http://"), '/'), "/") == 0;
	address_url_fini(&u);
	return is;
}

/* ---- URLs */

void address_url_fini(struct address_url *u)
{
	curl_url_cleanup(u->handle);
	free(u->text);
	free(u->host);
	*u = (struct address_url){0};
}

bool address_same_origin(const struct address_url *a, const struct address_url *b)
{
	return a->tls == b->tls && a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Refuse bytes that no URL has raw: readers disagree about their meaning. */
static int address_check_text(const char *text, struct ava_error *err)
{
	size_t len = strlen(text);

	if (len == 0)
		return err_set(err, AVA_EINVAL, "the URL is empty");
	if (len > ADDRESS_URL_MAX)
		return err_set(err, AVA_EINVAL, "a URL has %d bytes at the most", ADDRESS_URL_MAX);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ' || c == 0x7f || strchr("\\\"<>", c))
			return err_set(err, AVA_EINVAL,
				       "a URL holds no blanks, control characters or any of "
				       "\\ \" < >: percent-encode them");
	}
	return 0;
}

/* Copy a part of the URL, or NULL; false: no memory. */
static bool url_part(const struct address_url *u, CURLUPart which, unsigned flags, char **out)
{
	char *s = NULL;
	CURLUcode rc = curl_url_get(u->handle, which, &s, flags);

	*out = NULL;
	if (rc != CURLUE_OK)
		return rc != CURLUE_OUT_OF_MEMORY;
	*out = strdup(s);
	curl_free(s);
	return *out != NULL;
}

static bool has_part(const struct address_url *u, CURLUPart which)
{
	char *s = NULL;
	bool there = curl_url_get(u->handle, which, &s, 0) == CURLUE_OK;

	curl_free(s);
	return there;
}

/* Is the name never one of the public network? */
static bool is_inside_name(const char *host)
{
	static const char *const tops[] = {"localhost",   "local",     "internal",
					   "localdomain", "home.arpa", "intranet",
					   "lan",         "corp",      "onion"};
	size_t len = strlen(host);

	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		size_t n = strlen(tops[i]);

		if (len >= n && strcmp(host + len - n, tops[i]) == 0 &&
		    (len == n || host[len - n - 1] == '.'))
			return true;
	}
	return false;
}

/* Read the host as an address, when it is one. */
static bool literal(const char *host, struct sockaddr_storage *sa)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
		memcpy(sa, &v4, sizeof(v4));
	else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1)
		memcpy(sa, &v6, sizeof(v6));
	else
		return false;
	return true;
}

/* Take the host in its one compared form, also into the handle. */
static int take_host(struct address_url *u, struct ava_error *err)
{
	size_t len;
	char *s;

	free(u->host);
	if (!url_part(u, CURLUPART_HOST, 0, &u->host))
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (s = u->host; s && *s && (unsigned char)*s < 0x80; s++)
		*s = (char)tolower((unsigned char)*s);
	if (!s || s == u->host || *s)
		return err_set(err, AVA_EINVAL,
			       "the URL has no host, or one with letters beyond a to z: write its "
			       "xn-- form");
	len = strlen(u->host);
	if (u->host[0] == '[' && len > 2) {
		memmove(u->host, u->host + 1, len - 2);
		u->host[len - 2] = '\0';
		return 0;
	}
	if (u->host[len - 1] == '.')
		u->host[--len] = '\0';
	if (len == 0 || len > HOST_MAX || u->host[0] == '.' || u->host[len - 1] == '.' ||
	    strspn(u->host, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != len)
		return err_set(err, AVA_EINVAL, "the URL's host is none");
	if (curl_url_set(u->handle, CURLUPART_HOST, u->host, 0) != CURLUE_OK)
		return err_set(err, AVA_EINVAL, "the URL's host is none");
	return 0;
}

/* Parse again: libcurl looks for an IPv4 address before it decodes percents in the host; take_host
 * left none, so that it now finds the address. */
static int read_again(struct address_url *u, struct ava_error *err)
{
	char *text = NULL;
	CURLUcode rc = CURLUE_OUT_OF_MEMORY;

	if (url_part(u, CURLUPART_URL, 0, &text) && text)
		rc = curl_url_set(u->handle, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
	free(text);
	return rc == CURLUE_OK              ? 0
	       : rc == CURLUE_OUT_OF_MEMORY ? err_set(err, AVA_ENOMEM, "out of memory")
					    : err_set(err, AVA_EINVAL, "that is no URL");
}

/* Take scheme, port and text. */
static int take_rest(struct address_url *u, struct ava_error *err)
{
	char *scheme = NULL, *port = NULL;
	bool memory = url_part(u, CURLUPART_SCHEME, 0, &scheme) &&
		      url_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, &port) &&
		      curl_url_set(u->handle, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK &&
		      url_part(u, CURLUPART_URL, 0, &u->text) && u->text;
	bool http = scheme && strcmp(scheme, "http") == 0;

	u->tls = scheme && strcmp(scheme, "https") == 0;
	u->port = port ? (uint16_t)strtoul(port, NULL, 10) : 0;
	free(scheme);
	free(port);
	if (!memory)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (!http && !u->tls)
		return err_set(err, AVA_EINVAL, "only http and https are fetched");
	if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD))
		return err_set(err, AVA_EDENIED, "take the login out of the URL");
	if (has_part(u, CURLUPART_ZONEID) || u->port == 0)
		return err_set(err, AVA_EINVAL, "the URL's host or port is none");
	return 0;
}

static int judge_url(const struct address_url *u, struct ava_error *err)
{
	struct sockaddr_storage sa = {0};
	bool number = literal(u->host, &sa);

	if (number && address_judge((struct sockaddr *)&sa) != ADDRESS_PUBLIC)
		return err_set(err, AVA_EDENIED,
			       "that address is not of the public network, and none other is "
			       "fetched from");
	if (!number && (is_inside_name(u->host) || !strchr(u->host, '.')))
		return err_set(err, AVA_EDENIED,
			       "that host is not of the public network, and none other is fetched "
			       "from");
	if (u->port != 80 && u->port != 443)
		return err_set(err, AVA_EDENIED, "only the ports 80 and 443 are fetched from");
	return 0;
}

int address_url_parse(struct address_url *u, const char *text, const struct address_url *base,
		      const char *const *inside, struct ava_error *err)
{
	CURLUcode rc = CURLUE_OUT_OF_MEMORY;
	int rv = address_check_text(text, err);

	*u = (struct address_url){0};
	if (rv != 0)
		return rv;
	u->handle = base ? curl_url_dup(base->handle) : curl_url();
	if (u->handle)
		rc = curl_url_set(u->handle, CURLUPART_URL, text,
				  CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE);
	if (rc == CURLUE_OUT_OF_MEMORY)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else if (rc != CURLUE_OK)
		rv = err_set(err, AVA_EINVAL, "that is no URL: write https://host/path");
	rv = rv ? rv : take_host(u, err);
	rv = rv ? rv : read_again(u, err);
	rv = rv ? rv : take_host(u, err);
	rv = rv ? rv : take_rest(u, err);
	if (rv == 0 && !address_is_listed(inside, u))
		rv = judge_url(u, err);
	if (rv != 0)
		address_url_fini(u);
	return rv;
}
