/* Error sentences and the texts behind ava.h's codes and status.
 *
 * A failing function fills `err` once where it knows most; callers put context in front of it on
 * the way up. A sentence that does not fit is cut; a newline inside one becomes a space, since
 * it is printed as one line. Nothing here can fail. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* Format into text[] and keep it one line; a cut leaves no half of a character. */
static void error_put_text(char *text, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(text, size, fmt, ap);
	size_t end = n < 0 ? 0 : MIN((size_t)n, size - 1);

	if (n >= (int)size) {
		while (end > 0 && ((unsigned char)text[end - 1] & 0xC0) == 0x80)
			end--;
		end -= end > 0 && (unsigned char)text[end - 1] >= 0xC0;
	}
	text[end] = '\0';
	for (char *p = text; (p = strpbrk(p, "\r\n")) != NULL;)
		*p = ' ';
}

int err_set(struct ava_error *err, int code, const char *fmt, ...)
{
	char text[sizeof(err->text)];
	va_list ap;

	if (err == NULL)
		return code;
	/* By way of a local: an argument may point into err->text. */
	va_start(ap, fmt);
	error_put_text(text, sizeof(text), fmt, ap);
	va_end(ap);
	err->code = code;
	memcpy(err->text, text, strlen(text) + 1);
	return code;
}

static int code_of_errno(int number)
{
	if (err_is_full(number))
		return AVA_EFULL;
	switch (number) {
	case ENOENT:
		return AVA_ENOENT;
	case ENOMEM:
		return AVA_ENOMEM;
	case EACCES:
	case EPERM:
	case EROFS:
		return AVA_EDENIED;
	default:
		return AVA_EIO;
	}
}

int err_sys(struct ava_error *err, const char *fmt, ...)
{
	int number = errno, code = code_of_errno(number);
	char what[sizeof(err->text)], why[128];
	va_list ap;

	if (err != NULL) {
		va_start(ap, fmt);
		error_put_text(what, sizeof(what), fmt, ap);
		va_end(ap);
		err_set(err, code, "%s: %s", what, strerror_r(number, why, sizeof(why)));
	}
	errno = number;
	return code;
}

int err_wrap(struct ava_error *err, int code, const char *fmt, ...)
{
	char what[sizeof(err->text)];
	va_list ap;

	if (err == NULL)
		return code;
	va_start(ap, fmt);
	error_put_text(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%s: %s", what,
		       err->text[0] != '\0' ? err->text : ava_strerror(code));
}

const char *err_word(int code)
{
	switch (code) {
#define X(name, number, word, text)                                                                \
	case number:                                                                               \
		return word;
		AVA_ERRORS(X)
#undef X
	}
	return "internal";
}

int err_code(const char *word, size_t len)
{
#define X(name, number, its_word, text)                                                            \
	if (number != 0 && strlen(its_word) == len && memcmp(word, its_word, len) == 0)            \
		return number;
	AVA_ERRORS(X)
#undef X
	return 0;
}

const char *ava_strerror(int code)
{
	switch (code) {
#define X(name, number, word, text)                                                                \
	case number:                                                                               \
		return text;
		AVA_ERRORS(X)
#undef X
	}
	return "unknown error";
}

const char *ava_status_name(enum ava_status status)
{
	static const char *const names[] = {
#define X(name, word) word,
		AVA_STATUSES(X)
#undef X
	};

	return (unsigned)status < AVA_NSTATUSES ? names[status] : "unknown";
}

const char *ava_version(void)
{
	return AVA_VERSION;
}
