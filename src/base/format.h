/* Figures and names for people: the same in a quote, a status line, a result, an answer. Used
 * amounts are rounded; a limit is exact, since it is enforced. Pure; nothing can fail. Returned
 * by value: no lifetime to mind. */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define FORMAT_LEN 48
struct format {
	char text[FORMAT_LEN];
};

struct format format_money(int64_t microusd); /* "$0.24"; -1: "cost unknown" */
struct format format_seconds(int64_t ms);     /* "45s", "0.4s" */
struct format format_ms(int64_t ms);          /* "12 ms", "3.4 s": the duration of one call */
struct format format_tokens(int64_t n);       /* "850", "1.2k", "12k", "3.4M" */
struct format format_bytes(int64_t n);        /* "812 B", "2.1 KB" */
struct format format_count(size_t n);         /* "850", "1,240" */

struct format format_money_limit(int64_t microusd); /* "$0.50", "$0.0050"; -1: "cost unknown" */
struct format format_time_limit(int64_t ms);        /* "10 min", "1 h 30 min", "45 s" */
struct format format_tokens_limit(int64_t n);       /* "100k", "1.5M", "12345" */

/* A sentence in `size` bytes: whole, or up to the last whole word that fits and "...". */
void format_cut(char *out, size_t size, const char *text);

struct format format_role(const char *name); /* "web_crawler": "WebCrawler" */

#endif
