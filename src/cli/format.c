/* Numbers and names as people read them; format.h.
 *
 * Pure but for the time zone. Nothing can fail: what does not fit is cut, and
 * a time that cannot be told is "?". */
#include "cli/format.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

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
static struct format scaled(int64_t n, int64_t unit, const char *suffix)
{
	struct format f;

	if (n < 10 * unit)
		snprintf(f.text, sizeof(f.text), "%" PRId64 ".%" PRId64 "%s", n / unit,
			 n % unit * 10 / unit, suffix);
	else
		snprintf(f.text, sizeof(f.text), "%" PRId64 "%s", n / unit, suffix);
	return f;
}

static struct format plain(int64_t n, const char *suffix)
{
	struct format f;

	snprintf(f.text, sizeof(f.text), "%" PRId64 "%s", n, suffix);
	return f;
}

struct format format_tokens(int64_t n)
{
	if (n < 1000)
		return plain(n, "");
	return n < 1000000 ? scaled(n, 1000, "k") : scaled(n, 1000000, "M");
}

struct format format_bytes(int64_t n)
{
	if (n < 1024)
		return plain(n, " B");
	return n < 1 << 20 ? scaled(n, 1024, " KB") : scaled(n, 1 << 20, " MB");
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

static struct format local(int64_t wall_ms, const char *form)
{
	struct format f = {"?"};
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;

	if (localtime_r(&t, &tm) != NULL)
		strftime(f.text, sizeof(f.text), form, &tm);
	return f;
}

struct format format_clock(int64_t wall_ms)
{
	return local(wall_ms, "%H:%M:%S");
}

struct format format_date(int64_t wall_ms)
{
	return local(wall_ms, "%Y-%m-%d");
}
