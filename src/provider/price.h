/* Money in text: US dollars per million tokens as people write them, micro-USD
 * inside. What a call costs is agent/limit.h's. */
#ifndef PROVIDER_PRICE_H
#define PROVIDER_PRICE_H

#include <stddef.h>
#include <stdint.h>

#define PRICE_MAX_USD 100000

/* "3", "0.25", ".5": plain decimals with up to six digits after the point,
 * exactly; 0 to PRICE_MAX_USD. AVA_EINVAL: it is none. */
int price_parse(const char *text, int64_t *microusd);
/* "$3.00", "$0.125", "unknown" for a negative one. */
void price_text(int64_t microusd, char *out, size_t size);

#endif
