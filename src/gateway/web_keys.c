/* See web_keys.h.
 *
 * Every proof is HMAC-SHA-256 over lines of which the first says what it is for, so that none can
 * be given back as another. A number of a request is used once: `seen` is a window below the
 * highest. Nothing in here can fail but by refusing. */
#include "gateway/web_keys.h"

#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ops.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/util.h"

#define CODE_MS    60000
#define TAB_MS     (30ll * 86400 * 1000)
#define NUMBER_MAX ((1ull << 53) - 1) /* a browser counts exactly to here */

static void key_mac(const struct web_key *key, const char *text, unsigned char out[32])
{
	hash_hmac(key->key, key->len, "", text, strlen(text), out);
}

static bool key_made(const struct web_key *key, const char *text, const char *mac)
{
	unsigned char own[32], given[32];

	key_mac(key, text, own);
	return hash_from_hex(mac, given) && memeql_sec(own, given, sizeof(own));
}

static void key_drop(struct web_keys *k, unsigned i)
{
	unsigned door = k->rows[i].door;

	k->n--;
	memmove(&k->rows[i], &k->rows[i + 1], (k->n - i) * sizeof(k->rows[0]));
	k->gone(door, k->user);
}

static void key_add(struct web_keys *k, enum web_key_kind kind, const unsigned char *bytes,
		    size_t len, int64_t until_ms)
{
	struct web_key *key;
	unsigned char id[32];
	unsigned oldest = 0;

	for (unsigned i = 1; i < k->n; i++)
		if (k->rows[i].used < k->rows[oldest].used)
			oldest = i;
	if (k->n == WEB_KEYS_MAX)
		key_drop(k, oldest);
	key = &k->rows[k->n++];
	*key = (struct web_key){.kind = kind,
				.len = len,
				.until_ms = until_ms,
				.used = ++k->uses,
				.door = ++k->doors};
	memcpy(key->key, bytes, len);
	key_mac(key, "ava id", id);
	hash_hex(id, WEB_ID_LEN / 2, key->id);
}

/* Find a key by id (NULL: none), after dropping keys whose time is over. */
static struct web_key *key_find(struct web_keys *k, const char *id)
{
	struct web_key *found = NULL;

	for (unsigned i = k->n; i-- > 0;)
		if (k->rows[i].until_ms <=
		    (k->rows[i].kind == WEB_KEY_TAB ? clock_wall_ms() : clock_mono_ms()))
			key_drop(k, i);
	for (unsigned i = 0; i < k->n; i++)
		if (strcmp(id, k->rows[i].id) == 0)
			found = &k->rows[i];
	if (found)
		found->used = ++k->uses;
	return found;
}

void web_keys_init(struct web_keys *k, void (*gone)(unsigned door, void *user), void *user)
{
	unsigned char raw[WEB_ID_LEN / 2];

	*k = (struct web_keys){.gone = gone, .user = user};
	id_random(raw, sizeof(raw));
	hash_hex(raw, sizeof(raw), k->challenge);
}

void web_keys_code(struct web_keys *k, char code[WEB_ID_LEN + 1])
{
	unsigned char raw[WEB_ID_LEN / 2];

	for (unsigned i = k->n; i-- > 0;)
		if (k->rows[i].kind == WEB_KEY_CODE)
			key_drop(k, i);
	id_random(raw, sizeof(raw));
	hash_hex(raw, sizeof(raw), code);
	key_add(k, WEB_KEY_CODE, raw, sizeof(raw), clock_mono_ms() + CODE_MS);
}

void web_keys_restore(struct web_keys *k, const char *key, int64_t until_ms)
{
	unsigned char raw[WEB_KEY_BYTES];
	int64_t now = clock_wall_ms();

	/* A clock that was set back makes no session longer than it is. */
	if (k->n < WEB_KEYS_MAX && until_ms > now && hash_from_hex(key, raw))
		key_add(k, WEB_KEY_TAB, raw, sizeof(raw), MIN(until_ms, now + TAB_MS));
}

unsigned web_keys_tabs(const struct web_keys *k)
{
	unsigned n = 0;

	for (unsigned i = 0; i < k->n; i++)
		n += k->rows[i].kind == WEB_KEY_TAB;
	return n;
}

bool web_keys_open(struct web_keys *k, const struct core_hello *h, char proof[65], bool *opened)
{
	const struct web_key *key = key_find(k, h->id);
	unsigned char mac[32];
	char text[256];

	*opened = false;
	if (!key || strlen(h->nonce) != WEB_ID_LEN)
		return false;
	snprintf(text, sizeof(text), "ava hello\n%s\n%s", h->host, h->nonce);
	if (!key_made(key, text, h->mac))
		return false;
	snprintf(text, sizeof(text), "ava daemon\n%s\n%s\n%s", h->host, h->nonce, k->challenge);
	key_mac(key, text, mac);
	hash_hex(mac, sizeof(mac), proof);
	if (key->kind == WEB_KEY_TAB)
		return true;
	snprintf(text, sizeof(text), "ava key\n%s\n%s\n%s", h->host, h->nonce, k->challenge);
	key_mac(key, text, mac);
	*opened = key->kind == WEB_KEY_BROWSER;
	if (!*opened) /* a code is good once */
		key_drop(k, (unsigned)(key - k->rows));
	if (*opened)
		key_add(k, WEB_KEY_TAB, mac, sizeof(mac), clock_wall_ms() + TAB_MS);
	else
		key_add(k, WEB_KEY_BROWSER, mac, sizeof(mac), clock_mono_ms() + TAB_MS);
	return true;
}

/* Was `n` not there yet? Then it is from now on. */
static bool number_is_new(struct web_key *key, uint64_t n)
{
	uint64_t bit;

	if (n == 0 || n > NUMBER_MAX || n + WEB_KEY_WINDOW <= key->top)
		return false;
	if (n > key->top) {
		key->seen = n - key->top < WEB_KEY_WINDOW ? key->seen << (n - key->top) : 0;
		key->top = n;
	}
	bit = 1ull << (key->top - n);
	if (key->seen & bit)
		return false;
	key->seen |= bit;
	return true;
}

const struct web_key *web_keys_signer(struct web_keys *k, const struct web_signed *r)
{
	char id[WEB_ID_LEN + 1], number[17], mac[65], target[65], body[65], text[512];
	struct web_key *key;
	int end = 0;

	if (!r->field || !r->target_sha256 ||
	    sscanf(r->field, "Ava id=%32[0-9a-f], n=%16[0-9], mac=%64[0-9a-f]%n", id, number, mac,
		   &end) != 3 ||
	    r->field[end] || number[0] == '0')
		return NULL;
	key = key_find(k, id);
	if (!key || key->kind != WEB_KEY_TAB)
		return NULL;
	hash_hex(r->target_sha256, 32, target);
	hash_sha256_hex(r->body, r->body_len, body);
	snprintf(text, sizeof(text), "ava request\n%s\n%s\n%s\n%s\n%s\n%s", r->host, k->challenge,
		 number, r->method, target, body);
	return key_made(key, text, mac) && number_is_new(key, strtoull(number, NULL, 10)) ? key
											  : NULL;
}

void web_keys_clear(struct web_keys *k)
{
	while (k->n > 0)
		key_drop(k, k->n - 1);
}
