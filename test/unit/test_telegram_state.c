/* telegram.json: it comes back as it was, and no damage lets anybody in. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "gateway/telegram_state.h"

#define DAY 86400000LL

static int write_load(struct tg_state *s, const char *text, size_t len, struct ava_error *err)
{
	char dir[256], path[300];
	int fd, rv;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/" TG_STATE, dir);
	if (text)
		unit_write(path, text, len);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*err = (struct ava_error){0};
	rv = tg_state_load(s, fd, 4711, err);
	close(fd);
	unit_rmdir(dir);
	return rv;
}

TEST(comes_back)
{
	struct tg_state *s = calloc(2, sizeof(*s));
	struct tg_card *c;
	struct ava_error err;
	struct buf text;

	assert_int_equal(write_load(s, NULL, 0, &err), 0);
	assert_null(tg_chat(s, 77));
	s->chats[1] = (struct tg_chat){.id = 77, .name = "\"K\"", .cwd = "/src", .session = "0b5e"};
	c = tg_card_new(s, 77, TG_QUOTE, "P-123456");
	c->message = 9;
	c->until_ms = 12345;
	for (int64_t id = 900; id <= 1000; id++)
		tg_see(s, id, DAY);
	buf_init(&text, 1u << 20);
	tg_state_write(s, &text);
	assert_int_equal(write_load(s + 1, text.data, text.len, &err), 0);
	assert_string_equal(tg_chat(s + 1, 77)->cwd, "/src");
	assert_int_equal(tg_offset(s + 1, DAY), 1001);
	assert_true(tg_seen(s + 1, 1000));
	assert_false(tg_seen(s + 1, 1001));
	c = tg_card_at(s + 1, 77, 9);
	assert_non_null(c);
	assert_ptr_equal(c, tg_card_of(s + 1, 77, TG_QUOTE, "P-123456"));
	assert_string_equal(c->nonce, s->cards[0].nonce);
	assert_ptr_equal(c, tg_card_with(s + 1, c->nonce, TG_NONCE_LEN));
	assert_null(tg_card_with(s + 1, c->nonce, TG_NONCE_LEN - 1));
	assert_null(tg_card_at(s + 1, 78, 9));
	buf_fini(&text);
	free(s);
}

/* A bit of it flipped, its end cut off: another person is never paired. */
TEST(damage)
{
	static const char good[] =
		"{\"version\":1,\"bot\":4711,\"newest\":1,\"seen\":[6],\"chats\":"
		"[{\"id\":77,\"name\":\"k\",\"cwd\":\"\",\"session\":\"\"}],\"cards\":[]}";
	struct tg_state *s = calloc(1, sizeof(*s));
	struct ava_error err;
	char text[sizeof(good)];

	assert_int_equal(write_load(s, good, sizeof(good) - 1, &err), 0);
	assert_non_null(tg_chat(s, 77));
	for (size_t len = 0; len < sizeof(good) - 1; len++) {
		assert_int_not_equal(write_load(s, good, len, &err), 0);
		assert_null(tg_chat(s, 77));
	}
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		memcpy(text, good, sizeof(text));
		text[i] ^= 0x10;
		(void)write_load(s, text, sizeof(good) - 1, &err);
		for (size_t k = 0; k < TG_CHATS_MAX; k++)
			assert_true(s->chats[k].id == 0 || s->chats[k].id == 77 || i > 60);
	}
	snprintf(text, sizeof(text), "{\"version\":2,\"bot\":4711}");
	assert_int_equal(write_load(s, text, strlen(text), &err), AVA_EFORMAT);
	snprintf(text, sizeof(text), "{\"version\":1,\"bot\":4712,\"chats\":[{\"id\":77}]}");
	assert_int_equal(write_load(s, text, strlen(text), &err), 0);
	assert_null(tg_chat(s, 77)); /* another bot's */
	snprintf(text, sizeof(text),
		 "{\"version\":1,\"bot\":4711,\"seen\":[5,-1,9223372036854775807,\"7\",null]}");
	assert_int_equal(write_load(s, text, strlen(text), &err), 0);
	assert_int_equal(tg_offset(s, 0), 6); /* of those that are numbers of updates */
	free(s);
}

/* The newest are known; after a week the numbers are of another life. */
TEST(updates)
{
	struct tg_state *s = calloc(1, sizeof(*s));

	for (int64_t id = 1; id <= 1000; id++)
		tg_see(s, id, DAY);
	for (int64_t id = 1; id <= 1000; id++)
		assert_int_equal(tg_seen(s, id), id > 1000 - TG_SEEN_MAX);
	assert_int_equal(tg_offset(s, 2 * DAY), 1001);
	assert_int_equal(tg_offset(s, 8 * DAY), 0);
	tg_see(s, 5, 8 * DAY);
	assert_true(tg_seen(s, 5));
	assert_false(tg_seen(s, 1000));
	assert_int_equal(tg_offset(s, 8 * DAY), 6);
	free(s);
}

TEST(cards)
{
	struct tg_state *s = calloc(1, sizeof(*s));
	char id[24];

	s->chats[0].id = 77;
	for (int i = 0; i < TG_CARDS_MAX + 3; i++) {
		snprintf(id, sizeof(id), "S-%06x", i);
		tg_card_new(s, 77, TG_RUN, id);
	}
	assert_null(tg_card_of(s, 77, TG_RUN, "S-000002")); /* the oldest went */
	assert_non_null(tg_card_of(s, 77, TG_RUN, "S-000003"));
	tg_card_drop(s, tg_card_of(s, 77, TG_RUN, "S-000004"));
	assert_null(tg_card_of(s, 77, TG_RUN, "S-000004"));
	assert_non_null(tg_card_of(s, 77, TG_RUN, "S-000042"));
	assert_ptr_equal(tg_card_new(s, 77, TG_RUN, "S-abcdef"), &s->cards[TG_CARDS_MAX - 1]);
	free(s);
}
