/* Any bytes as a response in the form of dialect_anthropic; see fuzz_stream.h. */
#include "fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	fuzz_stream(&dialect_anthropic, (const char *)data, len);
	return 0;
}
