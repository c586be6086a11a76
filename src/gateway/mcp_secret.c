/* See mcp_secret.h.
 *
 * Happy path: mcp.json is read once, or made of random bytes. A seal is HMAC-SHA-256 (RFC 2104),
 * its first half. What can fail: the disk (nothing is sealed then, and the caller says why); a
 * file that is damaged is made anew: clients ask for the token again. One that cannot be read just
 * now is not: it may have the key of what clients carry. */
#include "gateway/mcp_secret.h"

#include <ava.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/sys.h"
#include "codec/json.h"
#include "journal/files.h"

#define SECRET_FILE "mcp.json"
#define FILE_MAX    4096

/* Read mcp.json unless it is known. 0 also without a file, or with an incomplete one. */
static int secret_read(struct mcp_secret *s, struct ava_error *err)
{
	unsigned char token[32];
	char *text = NULL;
	json_t *doc = NULL;
	size_t len = 0;
	int rv;

	if (s->known)
		return 0;
	rv = sys_read_file(s->root_fd, SECRET_FILE, FILE_MAX, &text, &len, err);
	if (rv != 0)
		return rv == AVA_ENOENT || rv == AVA_ETOOBIG ? 0 : rv;
	doc = json_parse(text, len, NULL);
	free(text);
	s->known = hash_from_hex(json_str(doc, "key"), s->key) &&
		   hash_from_hex(json_str(doc, "token"), token);
	if (s->known)
		hash_hex(token, sizeof(token), s->token);
	json_decref(doc);
	return 0;
}

int mcp_secret_have(struct mcp_secret *s, bool renew, struct ava_error *err)
{
	unsigned char token[MCP_TOKEN_LEN / 2];
	char key[2 * sizeof(s->key) + 1], text[256];
	int n, rv = secret_read(s, err);

	if (rv != 0 || (s->known && !renew))
		return rv;
	if (!s->known)
		id_random(s->key, sizeof(s->key));
	id_random(token, sizeof(token));
	hash_hex(token, sizeof(token), s->token);
	hash_hex(s->key, sizeof(s->key), key);
	n = snprintf(text, sizeof(text), "{\"token\":\"%s\",\"key\":\"%s\"}\n", s->token, key);
	s->known = files_replace(s->root_fd, SECRET_FILE, text, (size_t)n, true) == 0;
	return s->known ? 0 : err_sys(err, "write %s", SECRET_FILE);
}

bool mcp_secret_allows(struct mcp_secret *s, const char *authorization)
{
	const char *given = authorization ? authorization + strcspn(authorization, " ") : "";

	return secret_read(s, NULL) == 0 && s->known && strlen(given) == 1 + MCP_TOKEN_LEN &&
	       strncasecmp(authorization, "Bearer ", 7) == 0 &&
	       memeql_sec(given + 1, s->token, MCP_TOKEN_LEN);
}

void mcp_secret_seal(const struct mcp_secret *s, const char *text, char out[MCP_SEAL_LEN + 1])
{
	unsigned char mac[32];

	hash_hmac(s->key, sizeof(s->key), "", text, strlen(text), mac);
	hash_hex(mac, MCP_SEAL_LEN / 2, out);
}

bool mcp_secret_is_seal(const struct mcp_secret *s, const char *text, const char *seal)
{
	char own[MCP_SEAL_LEN + 1];

	mcp_secret_seal(s, text, own);
	return strlen(seal) == MCP_SEAL_LEN && memeql_sec(own, seal, MCP_SEAL_LEN);
}
