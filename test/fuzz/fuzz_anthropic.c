/* Any bytes as a response in the form of dialect_anthropic; see fuzz_stream.h. */
#include "fuzz_stream.h"

FUZZ_TARGET(anthropic, len)
{
	fuzz_stream(&dialect_anthropic, (const char *)data, len);
}
