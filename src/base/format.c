/* Figures; format.h.
 *
 * Money and time are rounded in whole numbers, so that no figure depends on floating point;
 * tokens and bytes are cut, so that none shows more than was reached. */
#include "base/format.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct format format_money(int64_t microusd)
{
	struct format f;

	if (microusd < 0)
		snprintf(f.text, sizeof(f.text), "cost unknown");
	else if (microusd > 0 && microusd < 5000)
		snprintf(f.text, sizeof(f.text), "<$0.01");
	else
		snprintf(f.text, sizeof(f.text), "$%" PRId64 ".%02" PRId64,
			 (microusd + 5000) / 1000000, (microusd + 5000) % 1000000 / 10000);
	return f;
}

struct format format_seconds(int64_t ms)
{
	struct format f;

	if (ms < 9950 && (ms + 50) / 100 % 10 != 0)
		snprintf(f.text, sizeof(f.text), "%" PRId64 ".%" PRId64 "s", (ms + 50) / 1000,
			 (ms + 50) / 100 % 10);
	else
		snprintf(f.text, sizeof(f.text), "%" PRId64 "s", (ms + 500) / 1000);
	return f;
}

struct format format_ms(int64_t ms)
{
	struct format f;

	if (ms < 1000)
		snprintf(f.text, sizeof(f.text), "%" PRId64 " ms", ms);
	else
		snprintf(f.text, sizeof(f.text), "%" PRId64 ".%" PRId64 " s", ms / 1000,
			 ms % 1000 / 100);
	return f;
}

/* n / unit with one decimal below ten, none above. */
static struct format format_scaled(int64_t n, int64_t unit, const char *suffix)
{
	struct format f;

	if (n < 10 * unit)
		snprintf(f.text, sizeof(f.text), "%" PRId64 ".%" PRId64 "%s", n / unit,
			 n % unit * 10 / unit, suffix);
	else
		snprintf(f.text, sizeof(f.text), "%" PRId64 "%s", n / unit, suffix);
	return f;
}

static struct format format_plain(int64_t n, const char *suffix)
{
	struct format f;

	snprintf(f.text, sizeof(f.text), "%" PRId64 "%s", n, suffix);
	return f;
}

struct format format_tokens(int64_t n)
{
	if (n < 1000)
		return format_plain(n, "");
	return n < 1000000 ? format_scaled(n, 1000, "k") : format_scaled(n, 1000000, "M");
}

struct format format_bytes(int64_t n)
{
	if (n < 1024)
		return format_plain(n, " B");
	return n < 1 << 20 ? format_scaled(n, 1024, " KB") : format_scaled(n, 1 << 20, " MB");
}

/* ---- limits */

struct format format_count(size_t n)
{
	struct format f;

	if (n >= 1000000)
		snprintf(f.text, sizeof(f.text), "%zu,%03zu,%03zu", n / 1000000, n / 1000 % 1000,
			 n % 1000);
	else if (n >= 1000)
		snprintf(f.text, sizeof(f.text), "%zu,%03zu", n / 1000, n % 1000);
	else
		snprintf(f.text, sizeof(f.text), "%zu", n);
	return f;
}

struct format format_money_limit(int64_t microusd)
{
	bool cents = microusd % 10000 == 0;
	struct format f;

	if (microusd < 0)
		return format_money(microusd);
	snprintf(f.text, sizeof(f.text), "$%" PRId64 ".%0*" PRId64, microusd / 1000000,
		 cents ? 2 : 4, microusd % 1000000 / (cents ? 10000 : 100));
	return f;
}

struct format format_time_limit(int64_t ms)
{
	int64_t s = (ms + 999) / 1000, h = s / 3600, min = s / 60 % 60;
	struct format f;
	int n = 0;

	if (h > 0)
		n += snprintf(f.text, sizeof(f.text), "%" PRId64 " h", h);
	if (min > 0)
		n += snprintf(f.text + n, sizeof(f.text) - (size_t)n, "%s%" PRId64 " min",
			      n ? " " : "", min);
	if (s % 60 > 0 || s == 0)
		snprintf(f.text + n, sizeof(f.text) - (size_t)n, "%s%" PRId64 " s", n ? " " : "",
			 s % 60);
	return f;
}

struct format format_tokens_limit(int64_t n)
{
	struct format f;

	if (n >= 1000000 && n % 100000 == 0)
		snprintf(f.text, sizeof(f.text), "%.15gM", (double)n / 1e6);
	else if (n >= 1000 && n % 100 == 0)
		snprintf(f.text, sizeof(f.text), "%.15gk", (double)n / 1e3);
	else
		snprintf(f.text, sizeof(f.text), "%" PRId64, n);
	return f;
}

struct format format_role(const char *name)
{
	struct format f;
	size_t n = 0;
	int up = 1;

	for (; *name != '\0' && n + 1 < sizeof(f.text); name++) {
		if (*name == '_' || *name == '-') {
			up = 1;
			continue;
		}
		f.text[n++] = (char)(up ? toupper((unsigned char)*name) : *name);
		up = 0;
	}
	f.text[n] = '\0';
	return f;
}

void format_cut(char *out, size_t size, const char *text)
{
	size_t n = strlen(text), cut = size - 4;

	if (n < size) {
		memcpy(out, text, n + 1);
		return;
	}
	while (cut > size / 2 && text[cut] != ' ')
		cut--;
	while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	while (cut > 0 && strchr(" ,:;", text[cut - 1]))
		cut--;
	memcpy(out, text, cut);
	memcpy(out + cut, "...", 4);
}
