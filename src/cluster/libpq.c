/* Loading libpq; libpq.h.
 *
 * The library is opened by name and each function of the table is looked up. What can fail: no such
 * library, or one without the pipeline. It is never closed: OpenSSL, which comes with it, cannot be
 * unloaded and loaded again. */
#include "cluster/libpq.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

int libpq_load(struct libpq *pq, const char *file, struct ava_error *err)
{
	static const struct {
		const char *name;
		size_t at;
	} functions[] = {
#define LIBPQ_ROW(type, name, arguments) {#name, offsetof(struct libpq, name)},
		LIBPQ_FUNCTIONS(LIBPQ_ROW)
#undef LIBPQ_ROW
	};
	const char *name = file ? file : "libpq.so.5";
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	struct libpq found;

	if (!library)
		return err_set(err, AVA_ENOENT,
			       "a cluster needs the library %s: install the package libpq5"
			       " (postgresql-libs, libpq) of version 14 or newer",
			       name);
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return err_set(err, AVA_ENOENT,
				       "the library %s has no %s: install the package libpq5"
				       " (postgresql-libs, libpq) of version 14 or newer",
				       name, functions[i].name);
		memcpy((char *)&found + functions[i].at, &function, sizeof(function));
	}
	*pq = found;
	return 0;
}
