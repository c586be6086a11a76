/* Sign-in to the page by keys that are never sent.
 *
 * A code of `ava dashboard`, good once and for a minute, is a key that the address carries to the
 * browser behind its #. With it the page opens the browser's key, with that one a key of the tab,
 * and with that it signs each request. Opening: the page shows that it knows a key and gives a
 * number of its own, the daemon shows the same over that number and gives the challenge of its
 * start; both make the next key of these. doc/SECURITY.md, "The page", has the texts.
 *
 * Keys of tabs stand in web.json of the data root, since a page that is open goes on when the
 * daemon comes back; a tab has its own in memory alone. A browser's key is kept where other tabs
 * find it, and so would another program that served the address meanwhile: it ends with the daemon,
 * and so does the challenge, which every signature needs. Loop thread only. */
#ifndef GATEWAY_WEB_KEYS_H
#define GATEWAY_WEB_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_KEYS_MAX   64 /* a further one replaces the one used longest ago */
#define WEB_KEY_BYTES  32
#define WEB_ID_LEN     32 /* hex digits, as those of a code, a number of the page, a challenge */
#define WEB_KEY_WINDOW 64 /* a request this far behind the newest one is refused */

enum web_key_kind { WEB_KEY_CODE, WEB_KEY_BROWSER, WEB_KEY_TAB };

struct web_key {
	enum web_key_kind kind;
	unsigned char key[WEB_KEY_BYTES];
	size_t len; /* bytes of `key`: a code has half */
	char id[WEB_ID_LEN + 1];
	int64_t until_ms; /* wall clock; of a code and a browser clock_mono_ms */
	uint64_t used;    /* order of use */
	unsigned door;    /* door number of its event streams */
	uint64_t top;     /* the highest number of a request in this life of the daemon */
	uint64_t seen;    /* recent numbers already used: bit top - n */
};

struct core_hello;

struct web_keys {
	struct web_key rows[WEB_KEYS_MAX];
	unsigned n, doors;
	uint64_t uses;
	char challenge[WEB_ID_LEN + 1];
	/* Called when a key has ended, to end its streams. */
	void (*gone)(unsigned door, void *user);
	void *user;
};

/* The signed parts of a request. */
struct web_signed {
	const char *host, *method, *field; /* the value of Authorization, or NULL */
	const unsigned char *target_sha256;
	const void *body;
	size_t body_len;
};

void web_keys_init(struct web_keys *k, void (*gone)(unsigned door, void *user), void *user);
/* Makes a new code of 32 hex digits; the previous code is no longer valid. */
void web_keys_code(struct web_keys *k, char code[WEB_ID_LEN + 1]);
/* Adds the key of a tab from web.json; what is no key, or too old, is left out. */
void web_keys_restore(struct web_keys *k, const char *key, int64_t until_ms);
unsigned web_keys_tabs(const struct web_keys *k);
/* False: no such key, or the page does not know it. *opened: a new tab was made. */
bool web_keys_open(struct web_keys *k, const struct core_hello *hello, char proof[65],
		   bool *opened);
/* The key that signed the request; NULL: none, or the request is a replay. */
const struct web_key *web_keys_signer(struct web_keys *k, const struct web_signed *r);
void web_keys_clear(struct web_keys *k);

#endif
