/* Records to hand over: what was written holds, with parts of logs, seals of several days and
 * keys; any byte that is another one is found, and a line is named where it stands. */
#include "seal_rig.h"

#include <sys/mman.h>

#include "base/util.h"
#include "journal/sealed.h"

static struct sealed_sum written;

/* The record in a file in memory. */
static int record_of(const char *run, bool messages)
{
	const struct sealed_wish w = {.run = run, .of = run ? run : "1970", .messages = messages};
	int fd = memfd_create("record", MFD_CLOEXEC);
	FILE *f = fdopen(dup(fd), "w");
	struct ava_error err = {0};

	if (sealed_write(rig.fd, &w, f, &written, &err) != 0)
		fail_msg("%s", err.text);
	fclose(f);
	return fd;
}

static void expect_record_holds(int fd)
{
	struct ava_error err = {0};
	struct sealed_sum sum;

	if (sealed_check(fd, NULL, &sum, &err) != 0)
		fail_msg("line %llu: %s", (unsigned long long)sum.line, err.text);
	assert_int_equal(sum.files, written.files);
	assert_int_equal(sum.seals, written.seals);
	assert_int_equal(sum.bytes, written.bytes);
	assert_int_equal(sum.newest.n, written.newest.n);
	assert_string_equal(sum.newest.hash, written.newest.hash);
}

TEST_WITH(days, NULL, rig_after)
{
	int fd;

	rig_fill(&rig, 5);
	fd = record_of(NULL, false);
	assert_int_equal(written.seals, 18);
	assert_int_equal(written.files, 9); /* six runs, three days */
	expect_record_holds(fd);
	close(fd);
	fd = record_of("S-000004", false); /* of the third day */
	assert_int_equal(written.seals, 6);
	assert_int_equal(written.files, 1);
	expect_record_holds(fd);
	close(fd);
}

TEST_WITH(each_byte, NULL, rig_after)
{
	struct sealed_sum sum;
	struct stat st;
	unsigned char byte, was;
	int fd;

	rig_fill(&rig, 6);
	fd = record_of("S-000002", false);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at += 1 + (off_t)(rig_random(&rig) % 97)) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		was = byte;
		byte ^= (unsigned char)(1 << rig_random(&rig) % 8);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		/* Which run it is, `of`, is for people. */
		if (sealed_check(fd, NULL, &sum, NULL) != AVA_ECORRUPT && (at < 12 || at > 28))
			fail_msg("byte %lld", (long long)at);
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
	}
	expect_record_holds(fd);
	close(fd);
}

static void expect_line(int fd, uint64_t line, const char *what)
{
	struct ava_error err = {0};
	struct sealed_sum sum;

	assert_int_equal(sealed_check(fd, NULL, &sum, &err), AVA_ECORRUPT);
	assert_string_equal(err.text, what);
	assert_int_equal(sum.line, line);
}

/* A Seal has 1,024 marks at most, each of several lines then. */
TEST_WITH(long_log, NULL, rig_after)
{
	static const char path[] = "logs/subagents/S-000001.jsonl";
	struct stat st;
	char *bytes, *at;
	int fd;

	rig_init(&rig, 7);
	for (uint64_t i = 1; i <= 3000; i++)
		rig_some(&rig, path, "S-000001", i);
	rig_seal(&rig);
	fd = record_of("S-000001", false);
	expect_record_holds(fd);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	at = memmem(bytes, (size_t)st.st_size, "\"seq\":2000,", 11);
	assert_non_null(at);
	at[6]++;
	expect_line(fd, 3 + 1999,
		    "line 1999 of logs/subagents/S-000001.jsonl is not what seal 1 "
		    "covers");
	munmap(bytes, (size_t)st.st_size);
	close(fd);
}

/* A log went, and another one has its path: what was sealed of the first is not its own. */
TEST_WITH(another_in_its_place, NULL, rig_after)
{
	static const char path[] = "logs/subagents/S-000001.jsonl";
	int fd;

	rig_init(&rig, 9);
	for (uint64_t seq = 1; seq <= 3; seq++)
		rig_some(&rig, path, "S-000001", seq);
	rig_seal(&rig);
	rig_seal_gone(&rig, path);
	assert_int_equal(unlink(rig_full(&rig, path)), 0);
	rig_some(&rig, path, "S-000001", 1);
	rig_seal(&rig);
	fd = record_of("S-000001", false);
	assert_int_equal(written.files, 1);
	assert_int_equal(written.seals, 3);
	expect_record_holds(fd);
	close(fd);
}

/* A recovery went on in parts, and another key sealed them. */
TEST_WITH(parts_and_keys, NULL, rig_after)
{
	struct ava_error err = {0};
	struct sealed_sum sum;
	char first[80];
	int fd;

	rig_init(&rig, 8);
	unit_mkdirs(rig.root, "runs/S-000001/");
	for (uint64_t i = 1; i <= 5; i++)
		rig_some(&rig, "logs/subagents/S-000001.jsonl", "S-000001", i);
	rig_some(&rig, "runs/S-000001/messages.jsonl", "S-000001", 1);
	rig_seal(&rig);
	close(record_of("S-000001", false));
	snprintf(first, sizeof(first), "ed25519 %s\n", written.newest.key);
	rig_restart(&rig, true);
	assert_int_equal(unlink(rig_full(&rig, "seals/key")), 0);
	rig_some(&rig, "logs/subagents/S-000001.2.jsonl", "S-000001", 6);
	rig_some(&rig, "logs/subagents/S-000001.10.jsonl", "S-000001", 7);
	rig_seal(&rig);
	fd = record_of("S-000001", true);
	assert_int_equal(written.files, 4);
	assert_null(strstr(first, written.newest.key));
	expect_record_holds(fd);
	assert_int_equal(sealed_check(fd, first, &sum, &err), AVA_ECORRUPT);
	assert_string_equal(err.text, "seal 2 is of another key");
	assert_int_equal(sum.line, 3);
	close(fd);
}
