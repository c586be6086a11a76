/* Error objects: one sentence for a person beside the code for programs.
 * Context is added on the way up (err_wrap), printed once at the top. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <ava.h>
#include <errno.h>
#include <stdbool.h>

/* All return `code`, so that `return err_set(err, AVA_EINVAL, ...)` reads
 * well. `err` may be NULL. */
int err_set(struct ava_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* From errno: "<what>: <strerror>"; ENOSPC and EDQUOT become AVA_EFULL,
 * ENOENT AVA_ENOENT, ENOMEM AVA_ENOMEM, EACCES/EPERM/EROFS AVA_EDENIED,
 * everything else AVA_EIO. */
int err_sys(struct ava_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Put "<fmt>: " before the sentence already there. */
int err_wrap(struct ava_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Does the error mean no room, on the disk or in the user's quota? */
static inline bool err_is_full(int number)
{
	return number == ENOSPC || number == EDQUOT;
}

/* The word for JSON errors ("not_found"); never NULL. */
const char *err_word(int code);
/* The code of this word; 0: none. */
int err_code(const char *word, size_t len);

#endif
