/* Any bytes as a Markdown file with front matter: an error is one line with the name of the
 * file; else the text is UTF-8, and reading the same bytes again gives the same. */
#include "fuzz.h"

#include "base/error.h"
#include "codec/front.h"
#include "codec/utf8.h"

static enum front_key kind(const char *key, size_t len)
{
	static const char *const known[] = {"name", "tools", "model", "description"};

	for (size_t i = 0; i < 4; i++)
		if (strlen(known[i]) == len && memcmp(known[i], key, len) == 0)
			return i == 3 ? FRONT_TEXT : FRONT_FIELD;
	return FRONT_UNKNOWN;
}

FUZZ_TARGET(front, len)
{
	struct front a = {0}, b = {0};
	struct ava_error err = {0}, again = {0};
	int rv = front_read(&a, "x.md", (const char *)data, len, 65536, kind, &err);

	CHECK(front_read(&b, "x.md", (const char *)data, len, 65536, kind, &again) == rv);
	if (rv == 0) {
		CHECK(a.line > 0 && a.end_line > a.line);
		CHECK(utf8_valid(a.body, a.body_len) && !memchr(a.body, 0, a.body_len));
		CHECK(a.body_len == b.body_len && memcmp(a.body, b.body, a.body_len) == 0);
		CHECK(yaml_root(a.yaml)->kind == yaml_root(b.yaml)->kind);
	} else {
		CHECK(strcmp(err.text, again.text) == 0 && !strchr(err.text, '\n'));
		CHECK(strncmp(err.text, "x.md", 4) == 0 || rv == AVA_ENOMEM);
	}
	front_fini(&a);
	front_fini(&b);
}
