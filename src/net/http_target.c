/* The address of a pool, taken apart once by libcurl's own parser, so that
 * what is judged here is what is dialled later.
 *
 * Happy path: parse, refuse what an address of a provider never has (a login,
 * a query), decide loopback from the literal alone (a name that resolves to
 * loopback is not loopback: names can change), then look for a proxy in the
 * environment. Numbers in odd spellings (0x7f.1) arrive normalised.
 *
 * What can fail: the address (AVA_EINVAL, AVA_EDENIED) and memory. */
#include "net/http_target.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

void http_target_fini(struct http_target *t)
{
	if (t->proxy)
		explicit_bzero(t->proxy, strlen(t->proxy));
	free(t->url);
	free(t->host);
	free(t->proxy);
	*t = (struct http_target){0};
}

/* Copy a part of the URL; NULL: absent or no memory. */
static char *http_target_part(CURLU *u, CURLUPart which)
{
	char *s, *copy;

	if (curl_url_get(u, which, &s, 0) != 0)
		return NULL;
	copy = strdup(s);
	curl_free(s);
	return copy;
}

static bool http_target_has(CURLU *u, CURLUPart which)
{
	char *s = NULL;
	bool there = curl_url_get(u, which, &s, 0) == 0;

	curl_free(s);
	return there;
}

static bool is_loopback(const char *host)
{
	static const unsigned char one[16] = {[15] = 1};
	static const unsigned char mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
	unsigned char addr[16];

	if (inet_pton(AF_INET, host, addr) == 1)
		return addr[0] == 127;
	if (inet_pton(AF_INET6, host, addr) == 1)
		return memcmp(addr, one, 16) == 0 || memcmp(addr, mapped, 13) == 0;
	return strcasecmp(host, "localhost") == 0; /* libcurl never asks DNS for it */
}

/* ---- proxies */

static bool http_target_names(const char *entry, size_t len, const char *host)
{
	size_t hlen = strlen(host);
	unsigned char addr[16];
	const char *colon = memchr(entry, ':', len);

	if (len == 1 && *entry == '*')
		return true;
	if (colon && !memchr(colon + 1, ':', (size_t)(entry + len - colon - 1)))
		len = (size_t)(colon - entry); /* one colon: a port; more: IPv6 */
	if (len > 2 && *entry == '[' && entry[len - 1] == ']') {
		entry++;
		len -= 2;
	}
	if (len > 1 && *entry == '.') {
		entry++;
		len--;
	}
	if (len == 0 || hlen < len || strncasecmp(host + hlen - len, entry, len) != 0)
		return false;
	return hlen == len || (host[hlen - len - 1] == '.' && inet_pton(AF_INET, host, addr) != 1 &&
			       inet_pton(AF_INET6, host, addr) != 1);
}

bool http_target_no_proxy(const char *list, const char *host)
{
	while (*list) {
		size_t len = strcspn(list, ", \t");

		if (len && http_target_names(list, len, host))
			return true;
		list += len;
		list += strspn(list, ", \t");
	}
	return false;
}

static const char *from_env(const char *lower, const char *upper)
{
	const char *s = env_get(lower);

	if (!s || !*s)
		s = env_get(upper);
	return s && *s ? s : NULL;
}

/* ---- */

static int set_proxy(struct http_target *t, struct ava_error *err)
{
	/* Plain http goes to loopback only, without a proxy, so http_proxy is not read. */
	const char *none = from_env("no_proxy", "NO_PROXY");
	const char *proxy = from_env("https_proxy", "HTTPS_PROXY");
	CURLU *u;
	int rv = 0;

	if (!proxy)
		proxy = from_env("all_proxy", "ALL_PROXY");
	if (!proxy || t->loopback || (none && http_target_no_proxy(none, t->host)))
		return 0;
	u = curl_url();
	t->proxy = strdup(proxy);
	if (!u || !t->proxy)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else if (curl_url_set(u, CURLUPART_URL, proxy,
			      CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME) != 0)
		rv = err_set(err, AVA_EINVAL,
			     "the proxy in the environment (https_proxy or all_proxy) is not an "
			     "address: write http://host:port");
	curl_url_cleanup(u);
	return rv;
}

/* Refuse an address with parts it must not have, and http to elsewhere. */
static int http_target_judge(const struct http_target *t, CURLU *u, struct ava_error *err)
{
	if (http_target_has(u, CURLUPART_USER) || http_target_has(u, CURLUPART_PASSWORD))
		return err_set(err, AVA_EINVAL,
			       "base URL: take the login out of the address of %s; keys come from "
			       "the environment",
			       t->host);
	if (http_target_has(u, CURLUPART_QUERY) || http_target_has(u, CURLUPART_FRAGMENT))
		return err_set(err, AVA_EINVAL,
			       "base URL: take what follows ? or # out of the address of %s",
			       t->host);
	if (!t->tls && !t->loopback)
		return err_set(err, AVA_EDENIED,
			       "base URL: plain http is for loopback only (127.0.0.1, ::1, "
			       "localhost); write https://%s",
			       t->host);
	return 0;
}

static int http_target_take_apart(struct http_target *t, CURLU *u, struct ava_error *err)
{
	char *scheme = http_target_part(u, CURLUPART_SCHEME);
	size_t len;
	int rv;

	t->tls = scheme && strcmp(scheme, "https") == 0;
	if (scheme && !t->tls && strcmp(scheme, "http") != 0) {
		rv = err_set(err, AVA_EINVAL, "base URL: write https://host, not %.20s://", scheme);
		free(scheme);
		return rv;
	}
	t->host = http_target_part(u, CURLUPART_HOST);
	t->url = http_target_part(u, CURLUPART_URL);
	rv = scheme && t->host && t->url ? 0 : AVA_ENOMEM;
	free(scheme);
	if (rv != 0)
		return err_set(err, rv, "out of memory");
	len = strlen(t->host);
	if (len > 2 && t->host[0] == '[' && t->host[len - 1] == ']') {
		memmove(t->host, t->host + 1, len - 2);
		t->host[len - 2] = '\0';
	}
	t->loopback = is_loopback(t->host);
	for (len = strlen(t->url); len > 0 && t->url[len - 1] == '/'; len--)
		t->url[len - 1] = '\0';
	return http_target_judge(t, u, err);
}

int http_target_init(struct http_target *t, const char *base_url, struct ava_error *err)
{
	CURLU *u = curl_url();
	int rv;

	*t = (struct http_target){0};
	if (!u)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = base_url ? (int)curl_url_set(u, CURLUPART_URL, base_url, CURLU_NON_SUPPORT_SCHEME) : 1;
	if (rv == CURLUE_OUT_OF_MEMORY)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else if (rv != 0)
		rv = err_set(err, AVA_EINVAL,
			     "base URL: \"%.100s\" is not an address: write https://host/path",
			     base_url ? base_url : "");
	else
		rv = http_target_take_apart(t, u, err);
	if (rv == 0)
		rv = set_proxy(t, err);
	curl_url_cleanup(u);
	if (rv != 0)
		http_target_fini(t);
	return rv;
}
