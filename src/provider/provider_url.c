/* The address of a model service, as a person sets it: whether it can be one, and whether it is
 * near.
 *
 * By its form alone: no name is looked up, so a name other than localhost and *.local is far. What
 * can fail: it is no address, told in a sentence that repeats no password. */
#include "provider/provider_url.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

/* The host is elsewhere, in a private network, or this machine. */
enum url_reach { URL_FAR, URL_NETWORK, URL_MACHINE };

/* Reach by the form of `host`; names other than localhost and *.local are far. */
static enum url_reach url_reach(const char *host, size_t len)
{
	int used = 0;
	unsigned a, b, c, d;
	char text[256];
	bool inside;

	if (len >= sizeof(text))
		return URL_FAR;
	memcpy(text, host, len);
	text[len] = '\0';
	if (strcmp(text, "localhost") == 0 || strcmp(text, "[::1]") == 0)
		return URL_MACHINE;
	if (sscanf(text, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &used) == 4 && (size_t)used == len &&
	    b < 256 && c < 256 && d < 256) {
		inside = a == 10 || (a == 172 && b / 16 == 1) || (a == 192 && b == 168) ||
			 (a == 169 && b == 254);
		return a == 127 ? URL_MACHINE : inside ? URL_NETWORK : URL_FAR;
	}
	if (text[0] == '[') /* fc00::/7, fe80::/10 */
		inside = strcspn(text + 1, ":") == 4 && tolower(text[1]) == 'f' &&
			 (strchr("cCdD", text[2]) ||
			  (tolower(text[2]) == 'e' && strchr("89aAbB", text[3])));
	else
		inside = len > 6 && strcasecmp(text + len - 6, ".local") == 0;
	return inside ? URL_NETWORK : URL_FAR;
}

/* Length of the host in an address, with its brackets; *host: where it begins. */
static size_t url_host(const char *url, const char **host)
{
	*host = strstr(url, "://") + 3;
	return **host == '[' ? strcspn(*host, "]") + 1 : strcspn(*host, ":/");
}

bool provider_url_is_near(const char *url)
{
	const char *host;
	size_t len = strstr(url, "://") ? url_host(url, &host) : 0;

	return len > 0 && url_reach(host, len) != URL_FAR;
}

static bool url_port(const char *s, size_t len)
{
	char *end;
	long port = strtol(s, &end, 10);

	return len > 0 && isdigit((unsigned char)s[0]) && (size_t)(end - s) == len && port > 0 &&
	       port < 65536;
}

/* The reason why `url` is no address; NULL: it is one. */
static const char *url_fault(const char *url)
{
	bool tls = strncmp(url, "https://", 8) == 0;
	const char *host, *colon;
	size_t len, name;

	if (!tls && strncmp(url, "http://", 7) != 0)
		return "it must begin with https:// (or http:// for this machine)";
	for (const char *s = url; *s; s++)
		if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 127 ||
		    strchr("\"\\<>`{}|^", *s))
			return "it holds a character that no address has";
	if (strpbrk(url, "?#"))
		return "it must end with its path: no query and no fragment";
	name = url_host(url, &host);
	len = strcspn(host, "/");
	if (memchr(host, '@', len))
		return "it must not hold a user or password: keys stand in their own variable";
	if (name == 0 || name > len)
		return "it names no host";
	colon = host + name;
	if (name < len && (*colon != ':' || !url_port(colon + 1, len - name - 1)))
		return "its port is no number from 1 to 65535";
	if (!tls && url_reach(host, name) != URL_MACHINE)
		return "http:// is for this machine only (127.0.0.1, [::1], localhost): use "
		       "https://";
	return NULL;
}

int provider_url_check(const char *what, const char *url, char out[PROVIDER_URL_MAX],
		       struct ava_error *err)
{
	const char *fault = url_fault(url);
	size_t len = strlen(url);

	if (!fault && len >= PROVIDER_URL_MAX)
		fault = "it is too long";
	/* An address with a password is not repeated in the sentence. */
	if (fault && strchr(url, '@'))
		return err_set(err, AVA_EINVAL, "%s: %s", what, fault);
	if (fault)
		return err_set(err, AVA_EINVAL, "%s is \"%.100s\": %s", what, url, fault);
	while (len > 0 && url[len - 1] == '/')
		len--;
	memmove(out, url, len);
	out[len] = '\0';
	return 0;
}
