/* OTEL_EXPORTER_OTLP_HEADERS and otel.endpoint, as others of OpenTelemetry read
 * theirs. What can fail: an entry that is no header, too many of them, memory. No
 * value is ever part of an error. */
#include "ava/otel_headers.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/redact.h"

#define HEADER_MAX 4096
#define PATH       "/v1/traces"

static int hex_of(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

/* In place; false: a byte that no value of a header has. */
static bool decode(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++, to++) {
		*to = *s;
		if (*s == '%' && hex_of(s[1]) >= 0 && hex_of(s[2]) >= 0) {
			*to = (char)(hex_of(s[1]) << 4 | hex_of(s[2]));
			s += 2;
		}
		if ((unsigned char)*to < ' ' || *to == 127)
			return false;
	}
	*to = '\0';
	return true;
}

static bool is_name(const char *s)
{
	for (const char *at = s; *at != '\0'; at++)
		if (!isalnum((unsigned char)*at) && strchr("!#$%&'*+-.^_`|~", *at) == NULL)
			return false;
	return *s != '\0';
}

static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t");
	len = strlen(s);
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		s[--len] = '\0';
	return s;
}

static int take_pair(char *pair, unsigned n, int (*each)(const char *header, void *user),
		     void *user, struct ava_error *err)
{
	char header[HEADER_MAX], *value = strchr(pair, '='), *name;

	if (value != NULL)
		*value++ = '\0';
	name = trim(pair);
	if (value == NULL || !is_name(name) || n > OTEL_HEADERS_MAX || !decode(value))
		return err_set(err, AVA_EINVAL,
			       OTEL_HEADERS_NAME ": entry %u is no header: write name=value, "
						 "commas between, at most %d",
			       n, OTEL_HEADERS_MAX);
	if (snprintf(header, sizeof(header), "%s: %s", name, trim(value)) >= HEADER_MAX)
		return err_set(err, AVA_EINVAL, OTEL_HEADERS_NAME ": entry %u is too long", n);
	return each(header, user);
}

int otel_headers(const char *text, int (*each)(const char *header, void *user), void *user,
		 struct ava_error *err)
{
	char *copy = strdup(text != NULL ? text : ""), *save = NULL;
	unsigned n = 0;
	int rv = copy != NULL ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	for (char *at = copy != NULL ? strtok_r(copy, ",", &save) : NULL; at != NULL && rv == 0;
	     at = strtok_r(NULL, ",", &save))
		if (*trim(at) != '\0')
			rv = take_pair(at, ++n, each, user, err);
	if (copy != NULL)
		explicit_bzero(copy, strlen(text != NULL ? text : ""));
	free(copy);
	return rv;
}

/* "authorization: Basic abc": the value, and what stands behind its first word. */
static int add_secret(const char *header, void *user)
{
	static const char *const words[] = {"auth", "key", "token", "secret", "password"};
	const char *value = strstr(header, ": ") + 2, *rest = strchr(value, ' ');
	size_t name = (size_t)(value - header) - 2;
	char lower[HEADER_MAX];
	bool secret = false;
	int rv;

	for (size_t i = 0; i < name; i++)
		lower[i] = (char)tolower((unsigned char)header[i]);
	lower[name] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		secret |= strstr(lower, words[i]) != NULL;
	if (!secret)
		return 0;
	rv = redact_add(user, value);
	return rv == 0 && rest != NULL ? redact_add(user, rest + 1) : rv;
}

int otel_secrets(struct redact *r, const char *text)
{
	int rv = otel_headers(text, add_secret, r, NULL);

	return rv == AVA_EINVAL ? 0 : rv;
}

void otel_base(const char *endpoint, char *base, size_t size)
{
	size_t len, path = strlen(PATH);

	snprintf(base, size, "%s", endpoint);
	for (len = strlen(base); len > 0 && base[len - 1] == '/'; len--)
		base[len - 1] = '\0';
	if (len > path && strcmp(base + len - path, PATH) == 0)
		base[len - path] = '\0';
}
