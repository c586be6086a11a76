/* Patches: input is a file of text, a NUL, and another text. As two states of a file they make a
 * patch that is read back and leads from the one to the other. The second as a patch by itself: it
 * is refused, or names paths that stay below and is tried without harm. */
#include "fuzz.h"

#include "base/buf.h"
#include "codec/patch.h"

static void both_ways(const struct patch_side *a, const struct patch_side *b)
{
	struct patch_clash why;
	struct patch p;
	struct buf out;

	buf_init(&out, PATCH_MAX);
	if (patch_add(&out, "a/b", a, b) == 1) {
		CHECK(patch_read(&p, out.data, out.len, NULL) == 0);
		CHECK(p.n == 1);
		CHECK(patch_try(&p.files[0], a, &out, &why) == PATCH_FITS);
		CHECK(out.len == b->len && (b->len == 0 || memcmp(out.data, b->data, b->len) == 0));
		CHECK(patch_try(&p.files[0], b, &out, &why) == PATCH_DONE);
		patch_fini(&p);
	}
	buf_fini(&out);
}

FUZZ_TARGET(patch, size)
{
	size_t len = strnlen((const char *)data, size);
	struct patch_side a = {(const char *)data, len, true, false}, b;
	struct patch_clash why;
	struct patch p;
	struct buf out;

	if (len == size)
		return;
	b = (struct patch_side){(const char *)data + len + 1, size - len - 1, true, size % 2};
	if (!patch_unfit(a.data, a.len) && !patch_unfit(b.data, b.len))
		both_ways(&a, &b);
	if (patch_read(&p, b.data, b.len, NULL) != 0)
		return;
	buf_init(&out, PATCH_FILE_MAX);
	for (size_t i = 0; i < p.n; i++) {
		CHECK(patch_path_ok(p.files[i].path));
		CHECK(patch_try(&p.files[i], &a, &out, &why) >= 0);
	}
	buf_fini(&out);
	patch_fini(&p);
}
