/* Texts as json_read_others reads them, for json_peers.py: a number of bytes and a line's end, and
 * so many bytes of each; a line of JSON comes back, or "!" for what is none. */
#include <stdio.h>
#include <stdlib.h>

#include "codec/json.h"

int main(void)
{
	static char text[1u << 20];
	size_t len;

	while (scanf("%zu", &len) == 1 && len < sizeof(text) && getchar() == '\n' &&
	       fread(text, 1, len, stdin) == len) {
		json_t *v = json_read_others(text, len, NULL);
		struct buf out;

		buf_init(&out, 64u << 20);
		puts(v != NULL && json_dump(&out, v) == 0 ? out.data : "!");
		json_decref(v);
		buf_fini(&out);
	}
	return 0;
}
