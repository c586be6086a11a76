/* Ignore files and globs: input is a path, a NUL, and the text of an ignore
 * file. Whatever it says, the answer comes soon, is the same each time, and
 * does not change when the file is read twice (the last rule decides). */
#include "fuzz.h"

#include "tool/ignore.h"

FUZZ_TARGET(ignore, size)
{
	char path[256], *rules;
	size_t len = strnlen((const char *)data, size), n;
	struct ignore *ig;
	struct wild_glob g;
	bool once, is_dir;

	if (len == size || len == 0 || len >= sizeof(path))
		return;
	memcpy(path, data, len + 1);
	n = size - len - 1;
	rules = fuzz_text(data + len + 1, n);
	ig = ignore_new();
	CHECK(ig != NULL);
	is_dir = n % 2 == 0;
	CHECK(ignore_push(ig, IGNORE_FOLDER, "", rules, n) == 0);
	once = ignore_match(ig, path, is_dir);
	CHECK(ignore_match(ig, path, is_dir) == once);
	CHECK(ignore_push(ig, IGNORE_FOLDER, "", rules, n) == 0);
	CHECK(ignore_match(ig, path, is_dir) == once);
	CHECK(ignore_push(ig, IGNORE_INFO, "", "*\n", 2) == 0);
	CHECK(ignore_match(ig, path, is_dir) >= once);
	ignore_pop(ig, 0);
	CHECK(!ignore_match(ig, path, is_dir));
	ignore_free(ig);
	if (wild_glob_init(&g, rules, NULL) == 0) {
		wild_glob_match(&g, path, 0);
		wild_glob_fini(&g);
	}
	free(rules);
}
