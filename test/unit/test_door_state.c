/* <name>.json of a door: it comes back as it was, and no damage lets anybody in. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "gateway/door_state.h"

#define DAY 86400000LL

static int write_load(struct door_state *s, const char *text, size_t len, struct ava_error *err)
{
	char dir[256], path[300];
	int fd, rv;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/telegram.json", dir);
	if (text)
		unit_write(path, text, len);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*err = (struct ava_error){0};
	rv = door_state_load(s, fd, "telegram", true, "4711", err);
	close(fd);
	unit_rmdir(dir);
	return rv;
}

static void see(struct door_state *s, int id, int64_t wall_ms)
{
	char text[24];

	snprintf(text, sizeof(text), "%d", id);
	door_see(s, text, wall_ms);
}

TEST(comes_back)
{
	struct door_state *s = calloc(2, sizeof(*s));
	struct door_card *c;
	struct ava_error err;
	struct buf text;
	size_t len;

	assert_int_equal(write_load(s, NULL, 0, &err), 0);
	assert_null(door_chat(s, "77"));
	s->chats[1] =
		(struct door_chat){.id = "77", .name = "\"K\"", .cwd = "/src", .session = "0b5e"};
	c = door_card_new(s, "77", "P-123456");
	strcpy(c->message, "9");
	strcpy(c->labels, "Yes\nNo");
	c->until_ms = 12345;
	for (int id = 900; id <= 1000; id++)
		see(s, id, DAY);
	buf_init(&text, 1u << 20);
	door_state_write(s, &text);
	assert_int_equal(write_load(s + 1, text.data, text.len, &err), 0);
	assert_string_equal(door_chat(s + 1, "77")->cwd, "/src");
	assert_int_equal(door_offset(s + 1, DAY), 1001);
	assert_true(door_seen(s + 1, "1000"));
	assert_false(door_seen(s + 1, "1001"));
	c = door_card_at(s + 1, "77", "9");
	assert_non_null(c);
	assert_ptr_equal(c, door_card_of(s + 1, "77", "P-123456"));
	assert_string_equal(c->nonce, s->cards[0].nonce);
	assert_string_equal(door_card_button(c, 0, &len), "Yes\nNo");
	assert_int_equal(len, 3);
	assert_string_equal(door_card_button(c, 1, &len), "No");
	assert_null(door_card_button(c, 2, &len));
	assert_null(door_card_button(c, 4000000000u, &len));
	assert_ptr_equal(c, door_card_with(s + 1, c->nonce, DOOR_NONCE_LEN));
	assert_null(door_card_with(s + 1, c->nonce, DOOR_NONCE_LEN - 1));
	assert_null(door_card_at(s + 1, "78", "9"));
	buf_fini(&text);
	free(s);
}

/* A bit of it flipped, its end cut off: another person is never paired. */
TEST(damage)
{
	static const char good[] =
		"{\"version\":1,\"bot\":4711,\"newest\":1,\"seen\":[6],\"chats\":"
		"[{\"id\":77,\"name\":\"k\",\"cwd\":\"\",\"session\":\"\"}],\"cards\":[]}";
	struct door_state *s = calloc(1, sizeof(*s));
	struct ava_error err;
	char text[sizeof(good)];

	assert_int_equal(write_load(s, good, sizeof(good) - 1, &err), 0);
	assert_non_null(door_chat(s, "77"));
	for (size_t len = 0; len < sizeof(good) - 1; len++) {
		assert_int_not_equal(write_load(s, good, len, &err), 0);
		assert_null(door_chat(s, "77"));
	}
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		memcpy(text, good, sizeof(text));
		text[i] ^= 0x10;
		(void)write_load(s, text, sizeof(good) - 1, &err);
		for (size_t k = 0; k < DOOR_CHATS_MAX; k++)
			assert_true(!s->chats[k].id[0] || strcmp(s->chats[k].id, "77") == 0 ||
				    i > 60);
	}
	snprintf(text, sizeof(text), "{\"version\":2,\"bot\":4711}");
	assert_int_equal(write_load(s, text, strlen(text), &err), AVA_EFORMAT);
	snprintf(text, sizeof(text), "{\"version\":1,\"bot\":4712,\"chats\":[{\"id\":77}]}");
	assert_int_equal(write_load(s, text, strlen(text), &err), 0);
	assert_null(door_chat(s, "77")); /* another bot's */
	snprintf(text, sizeof(text),
		 "{\"version\":1,\"bot\":4711,\"seen\":[5,-1,9223372036854775807,\"7\",null]}");
	assert_int_equal(write_load(s, text, strlen(text), &err), 0);
	assert_int_equal(door_offset(s, 0), 6); /* of those that are numbers of updates */
	free(s);
}

/* The newest are known; after a week the numbers are of another life. */
TEST(updates)
{
	struct door_state *s = calloc(1, sizeof(*s));

	s->numbers = true;
	for (int id = 1; id <= 1000; id++)
		see(s, id, DAY);
	for (int id = 1; id <= 1000; id++) {
		char text[24];

		snprintf(text, sizeof(text), "%d", id);
		assert_int_equal(door_seen(s, text), id > 1000 - DOOR_SEEN_MAX);
	}
	assert_int_equal(door_offset(s, 2 * DAY), 1001);
	assert_int_equal(door_offset(s, 8 * DAY), 0);
	see(s, 5, 8 * DAY);
	assert_true(door_seen(s, "5"));
	assert_false(door_seen(s, "1000"));
	assert_int_equal(door_offset(s, 8 * DAY), 6);
	free(s);
}

TEST(cards)
{
	struct door_state *s = calloc(1, sizeof(*s));
	char id[24];

	strcpy(s->chats[0].id, "77");
	for (int i = 0; i < DOOR_CARDS_MAX + 3; i++) {
		snprintf(id, sizeof(id), "S-%06x", i);
		door_card_new(s, "77", id);
	}
	assert_null(door_card_of(s, "77", "S-000002")); /* the oldest went */
	assert_non_null(door_card_of(s, "77", "S-000003"));
	door_card_drop(s, door_card_of(s, "77", "S-000004"));
	assert_null(door_card_of(s, "77", "S-000004"));
	assert_non_null(door_card_of(s, "77", "S-000042"));
	assert_ptr_equal(door_card_new(s, "77", "S-abcdef"), &s->cards[DOOR_CARDS_MAX - 1]);
	free(s);
}

/* Ids that are no numbers, where to go on, and the order of messages come back too. */
TEST(words)
{
	struct door_state *s = calloc(2, sizeof(*s));
	struct ava_error err;
	struct door_card *c;
	char dir[256], path[300];
	struct buf text;
	int fd;

	s->name = "matrix";
	s->chats[0] = (struct door_chat){.id = "@ben:a.b", .room = "!r:a.b", .count = 9, .said = 7};
	strcpy(s->chats[0].own, "$e7");
	strcpy(s->account, "@ava:a.b");
	strcpy(s->since, "s72_1");
	door_see(s, "$e8", DAY);
	c = door_card_new(s, "@ben:a.b", "P-123456");
	strcpy(c->message, "$e6");
	c->order = 6;
	buf_init(&text, 1u << 20);
	door_state_write(s, &text);
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/matrix.json", dir);
	unit_write(path, text.data, text.len);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(door_state_load(s + 1, fd, "matrix", false, "", &err), 0);
	assert_string_equal(s[1].account, "@ava:a.b");
	assert_string_equal(s[1].since, "s72_1");
	assert_string_equal(door_chat(s + 1, "@ben:a.b")->room, "!r:a.b");
	assert_string_equal(door_chat(s + 1, "@ben:a.b")->own, "$e7");
	assert_int_equal(door_chat(s + 1, "@ben:a.b")->count, 9);
	assert_int_equal(door_card_at(s + 1, "@ben:a.b", "$e6")->order, 6);
	assert_true(door_seen(s + 1, "$e8"));
	assert_int_equal(door_state_load(s + 1, fd, "matrix", false, "@eve:a.b", &err), 0);
	assert_null(door_chat(s + 1, "@ben:a.b"));
	close(fd);
	unit_rmdir(dir);
	buf_fini(&text);
	free(s);
}
