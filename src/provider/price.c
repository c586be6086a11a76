/* Prices in text; see price.h. No floating point: 0.1 is 100000 micro-USD and
 * nothing near it. What can fail: text that is no such number, which is said
 * and not guessed at. */
#include "provider/price.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <ava.h>

#define MILLION INT64_C(1000000)

int price_parse(const char *text, int64_t *microusd)
{
	int64_t value = 0, unit = MILLION;
	const char *s = text;

	for (; isdigit((unsigned char)*s); s++) {
		value = value * 10 + (*s - '0') * MILLION;
		if (value > PRICE_MAX_USD * MILLION)
			return AVA_EINVAL;
	}
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++) {
			unit /= 10;
			if (unit == 0)
				return AVA_EINVAL;
			value += (*s - '0') * unit;
		}
	/* "." and "3." are half a number. */
	if (*s != '\0' || s == text || s[-1] == '.' || value > PRICE_MAX_USD * MILLION)
		return AVA_EINVAL;
	*microusd = value;
	return 0;
}

void price_text(int64_t microusd, char *out, size_t size)
{
	size_t len, least;

	if (microusd < 0) {
		snprintf(out, size, "unknown");
		return;
	}
	snprintf(out, size, "$%" PRId64 ".%06" PRId64, microusd / MILLION, microusd % MILLION);
	len = strlen(out);
	least = len < 4 ? len : len - 4; /* two digits stay */
	while (len > least && out[len - 1] == '0')
		out[--len] = '\0';
}
