/* Any bytes as a response in the form of dialect_openai (fuzz_stream.h), and as
 * lines of a conversation: what passes the check can be read to its end and
 * leaves no call open. */
#include "fuzz_lines.h"
#include "fuzz_stream.h"

FUZZ_TARGET(openai, len)
{
	if (len > 0 && data[0] == '{' && memchr(data, 0, len) == NULL)
		fuzz_lines(wire_check_chat, (const char *)data, len);
	fuzz_stream(&dialect_openai, (const char *)data, len);
}
