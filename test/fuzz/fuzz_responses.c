/* Any bytes as a response in the form of dialect_responses (fuzz_stream.h), and as
 * lines of a conversation, as fuzz_openai.c. */
#include "fuzz_lines.h"
#include "fuzz_stream.h"

FUZZ_TARGET(responses, len)
{
	if (len > 0 && data[0] == '{' && memchr(data, 0, len) == NULL)
		fuzz_lines(wire_check_items, (const char *)data, len);
	fuzz_stream(&dialect_responses, (const char *)data, len);
}
