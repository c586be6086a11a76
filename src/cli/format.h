/* Numbers and names as people read them. */
#ifndef CLI_FORMAT_H
#define CLI_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define FORMAT_LEN 48
struct format {
	char text[FORMAT_LEN];
}; /* returned by value: no lifetime to mind */

struct format format_money(int64_t microusd); /* "$0.24"; -1: "cost unknown" */
struct format format_seconds(int64_t ms);     /* "45s", "0.4s" */
struct format format_ms(int64_t ms);          /* "12 ms", "3.4 s" */
struct format format_tokens(int64_t n);       /* "850", "1.2k", "12k", "3.4M" */
struct format format_bytes(int64_t n);        /* "812 B", "2.1 KB" */
struct format format_role(const char *name);  /* "web_crawler": "WebCrawler" */
struct format format_clock(int64_t wall_ms);  /* "14:05:30", local */
struct format format_date(int64_t wall_ms);   /* "2026-11-21", local */

#endif
