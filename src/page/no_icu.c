/* The calls of ICU that Debian's archive of libxml2 makes, without ICU: no encoding is known.
 *
 * libxml2 asks ICU for encodings that it does not have itself. ava-page never does: charset.c has
 * made UTF-8 of every page. So a tarball's ava-page (-Dportable=true) is spared 30 MB; libxml2
 * takes a converter that cannot be opened for an encoding that ICU does not know. <unicode/ucnv.h>
 * gives these names the version that libxml2 was built with. */
#include <unicode/ucnv.h>
#include <unicode/ucnv_err.h>

UConverter *ucnv_open(const char *name, UErrorCode *err)
{
	*err = U_FILE_ACCESS_ERROR;
	return NULL;
}

void ucnv_close(UConverter *none) {}

void ucnv_setToUCallBack(UConverter *none, UConverterToUCallback action, const void *context,
			 UConverterToUCallback *before, const void **before_context,
			 UErrorCode *err)
{
	*err = U_FILE_ACCESS_ERROR;
}

void ucnv_setFromUCallBack(UConverter *none, UConverterFromUCallback action, const void *context,
			   UConverterFromUCallback *before, const void **before_context,
			   UErrorCode *err)
{
	*err = U_FILE_ACCESS_ERROR;
}

void ucnv_convertEx(UConverter *to_none, UConverter *from_none, char **to, const char *to_end,
		    const char **from, const char *from_end, UChar *pivot_start,
		    UChar **pivot_source, UChar **pivot_target, const UChar *pivot_end, UBool reset,
		    UBool flush, UErrorCode *err)
{
	*err = U_FILE_ACCESS_ERROR;
}

/* The callbacks are only handed over, to the two above. */
void UCNV_TO_U_CALLBACK_STOP(const void *context, UConverterToUnicodeArgs *args, const char *units,
			     int32_t len, UConverterCallbackReason reason, UErrorCode *err)
{
}

void UCNV_FROM_U_CALLBACK_STOP(const void *context, UConverterFromUnicodeArgs *args,
			       const UChar *units, int32_t len, UChar32 code_point,
			       UConverterCallbackReason reason, UErrorCode *err)
{
}
