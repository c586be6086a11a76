/* Any bytes as the data of an event: the scanner passes, or says what jansson
 * says. The same bytes as a text between quotes: it takes the strings that
 * jansson takes, and no others. */
#include "fuzz.h"

#include "delta_oracle.h" /* test/unit */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CHECK(oracle_agrees(false, (const char *)data, len));
	CHECK(oracle_agrees(true, (const char *)data, len));
	CHECK(oracle_string((const char *)data, len));
	return 0;
}
