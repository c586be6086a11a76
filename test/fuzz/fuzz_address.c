/* A URL that is taken is of http or https and of one form: read again it is the same one, with the
 * same host and port, and its host is no address inside. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "net/address.h"

static bool is_inside(const char *host)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
		return address_judge((struct sockaddr *)&v4) != ADDRESS_PUBLIC;
	if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1)
		return address_judge((struct sockaddr *)&v6) != ADDRESS_PUBLIC;
	return false;
}

static void check(const struct address_url *u)
{
	struct address_url again;

	CHECK(strncmp(u->text, u->tls ? "https://" : "http://", u->tls ? 8 : 7) == 0);
	CHECK(u->port == 80 || u->port == 443);
	CHECK(!is_inside(u->host));
	CHECK(!strpbrk(u->text, " \r\n\t\\#\"<>"));
	CHECK(!strpbrk(u->host, "[]@/?#%"));
	if (strlen(u->text) > ADDRESS_URL_MAX) /* escapes made it longer */
		return;
	CHECK(address_url_parse(&again, u->text, NULL, NULL, NULL) == 0);
	CHECK(strcmp(again.text, u->text) == 0 && strcmp(again.host, u->host) == 0);
	CHECK(address_same_origin(&again, u));
	address_url_fini(&again);
}

FUZZ_TARGET(address, len)
{
	struct address_url u, base;
	char text[ADDRESS_URL_MAX + 2];

	if (len >= sizeof(text))
		return;
	memcpy(text, data, len);
	text[len] = 0;
	if (address_url_parse(&u, text, NULL, NULL, NULL) == 0)
		check(&u);
	address_url_fini(&u);
	CHECK(address_url_parse(&base, "https://example.com/a/b?c", NULL, NULL, NULL) == 0);
	if (address_url_parse(&u, text, &base, NULL, NULL) == 0)
		check(&u);
	address_url_fini(&u);
	address_url_fini(&base);
}
