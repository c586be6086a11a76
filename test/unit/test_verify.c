/* Sealing and verifying: nothing is found where nothing was done, and each of
 * a thousand edits is found and named, as is each byte of a root that was
 * sealed once for all (test/golden/seals). */
#include "seal_rig.h"

#include <sodium.h>

#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/seal_read.h"

static void expect_whole(struct seal_rig *r)
{
	struct rig_found w = {0};
	struct ava_verified report = rig_verify(r, &w);

	if (w.broken > 0)
		fail_msg("seed %llu: %s", (unsigned long long)r->seed, w.all);
	assert_true(report.seals > 0);
}

TEST(untouched)
{
	struct rig_found w = {0};
	struct ava_verified report;

	rig_fill(&rig, 1);
	report = rig_verify(&rig, &w);
	assert_string_equal(w.all, "");
	assert_int_equal(report.seals, 18);
	assert_int_equal(report.newest.n, 18);
	assert_int_equal(report.unsealed_files, 0);
}

static void count(uint64_t done, uint64_t total, void *user)
{
	assert_true(done <= total);
}

/* Roots and files that are none; nobody who hears of findings; the root of the environment. */
TEST(what_is_asked_for)
{
	const char *path = "logs/none.jsonl";
	struct ava_verify o = {.root = "/nonexistent/root", .progress = count};
	struct ava_verified report;
	struct ava_log_head head;
	struct ava_error err;

	rig_fill(&rig, 3);
	assert_int_equal(ava_log_verify(&o, &report, &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/root"));
	assert_int_equal(ava_log_head(o.root, &head, NULL), AVA_ENOENT);
	assert_int_equal(head.n, 0);
	o.root = rig.root;
	assert_int_equal(ava_log_verify(&o, &report, NULL), 0);
	o.paths = &path;
	o.npaths = 1;
	assert_int_equal(ava_log_verify(&o, &report, NULL), AVA_ENOENT);
	setenv("AVA_DATA_ROOT", rig.root, 1);
	assert_int_equal(ava_log_head(NULL, &head, NULL), 0);
	unsetenv("AVA_DATA_ROOT");
	assert_int_equal(head.n, 18);
}

TEST(unsealed_tail_is_told_apart)
{
	struct rig_found w = {0};
	struct ava_verified report;

	rig_fill(&rig, 2);
	rig_day_event(&rig);
	rig_some(&rig, "logs/subagents/S-00000f.jsonl", "S-00000f", 1);
	report = rig_verify(&rig, &w);
	assert_int_equal(w.broken, 0);
	assert_int_equal(report.unsealed_files, 2);
	assert_non_null(strstr(w.all, "1 logs/ava/2026-11-21.jsonl:0: the end is not sealed yet (1 "
				      "lines"));
	assert_non_null(
		strstr(w.all, "1 logs/subagents/S-00000f.jsonl:0: nothing of it is sealed"));

	/* A crash: the next process seals what it finds, and whose runs the day names. */
	rig_restart(&rig, false);
	rig_forget(&rig);
	rig_some(&rig, rig.day, "S-00000f", ++rig.day_seq);
	rig_seal(&rig);
	report = rig_verify(&rig, &w);
	assert_string_equal(w.all, "");
	assert_int_equal(report.unsealed_files, 0);
}

static unsigned run_logs; /* opened */
static int catalog_fd = -1;
static uint64_t catalog_bytes; /* read */

static int openat_counted(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = sys_real.openat(dirfd, path, flags, mode);

	run_logs += strncmp(path, "logs/subagents/", 15) == 0;
	if (strcmp(path, "catalog.jsonl") == 0)
		catalog_fd = fd;
	else if (fd == catalog_fd)
		catalog_fd = -1;
	return fd;
}

static void one_run(unsigned number)
{
	char path[64], agent[16];

	snprintf(agent, sizeof(agent), "S-%06x", number);
	snprintf(path, sizeof(path), "logs/subagents/%s.jsonl", agent);
	rig_some(&rig, path, agent, 1);
	rig_some(&rig, rig.day, agent, ++rig.day_seq);
}

/* However many runs there were: after a crash the logs of those are read that came since the newest
 * round began. Without seals/last it is those behind the newest Seal. */
TEST(a_crash_is_as_long_as_its_tail)
{
	static struct sys_ops ops;
	struct rig_found w = {0};

	rig_init(&rig, 7);
	ops = sys_real;
	ops.openat = openat_counted;
	sys = &ops;
	for (unsigned n = 0; n < 160; n++) {
		one_run(n);
		if (n % 10 == 9)
			rig_seal(&rig);
		if (n != 39 && n != 79 && n != 159)
			continue;
		for (unsigned i = 0; i < 3; i++)
			one_run(0xf000 + n + i);
		rig_restart(&rig, false);
		rig_forget(&rig);
		if (n == 159)
			assert_int_equal(unlink(rig_full(&rig, "seals/last")), 0);
		run_logs = 0;
		rig_seal(&rig);
		assert_int_equal(run_logs, n == 159 ? 3 : 13);
		rig_verify(&rig, &w);
		assert_string_equal(w.all, "");
	}
	sys = &sys_real;
}

/* A run may end while the first round is made, too. */
TEST(ended_during_the_first_round)
{
	struct seal_list out = {0};
	struct rig_found w = {0};
	struct ava_error err = {0};

	rig_init(&rig, 8);
	rig_day_event(&rig);
	assert_int_equal(sealer_open(&rig.sealer, rig.fd, &err), 0);
	assert_int_equal(sealer_round(rig.sealer, rig.touched, rig.ntouched, NULL, &out, &err), 0);
	rig_forget(&rig);
	one_run(5);
	for (size_t i = 0; i < out.n; i++)
		rig_event(&rig, rig.day, EVENT_Seal, "ava", ++rig.day_seq, out.contents[i].data);
	assert_int_equal(sealer_committed(rig.sealer, rig.day, &err), 0);
	seal_list_fini(&out);
	rig_restart(&rig, false);
	rig_forget(&rig);
	rig_seal(&rig);
	rig_verify(&rig, &w);
	assert_string_equal(w.all, "");
}

static ssize_t pread_counted(int fd, void *buf, size_t len, off_t from)
{
	ssize_t n = sys_real.pread(fd, buf, len, from);

	catalog_bytes += n > 0 && fd == catalog_fd ? (uint64_t)n : 0;
	return n;
}

static void rows(unsigned n)
{
	char row[64];

	while (n-- > 0) {
		snprintf(row, sizeof(row), "{\"row\":\"spawn\",\"lsn\":%llu}\n",
			 (unsigned long long)++rig.lsn);
		rig_append(&rig, "catalog.jsonl", row, strlen(row));
	}
}

/* The catalog and the day are hashed on from where their newest Seals end, by the next process too,
 * after an orderly end as after a crash; what was changed before that is found all the same. */
TEST(hashed_on_from_the_seal)
{
	static struct sys_ops ops;
	struct rig_found w = {0};
	size_t len;
	char *text;
	int fd;

	rig_init(&rig, 9);
	ops = sys_real;
	ops.openat = openat_counted;
	ops.pread = pread_counted;
	sys = &ops;
	for (unsigned n = 0; n < 6; n++) {
		rows(2000);
		for (unsigned i = 0; i < 200; i++)
			rig_day_event(&rig);
		rig_seal(&rig);
		rows(3);
		rig_seal(&rig);
		rig_restart(&rig, n % 2 == 0);
		rows(1);
		rig_day_event(&rig);
		catalog_bytes = 0;
		rig_seal(&rig);
		assert_true(catalog_bytes > 0 && catalog_bytes < 200);
		rig_verify(&rig, &w);
		assert_string_equal(w.all, "");
	}
	sys = &sys_real;
	rig_restart(&rig, true);
	rows(1);
	text = unit_read(rig_full(&rig, "catalog.jsonl"), &len);
	fd = open(rig_full(&rig, "catalog.jsonl"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "{\"Row", 5, 0), 5);
	close(fd);
	rig_seal(&rig);
	rig_verify(&rig, &w);
	assert_true(w.broken > 0);
	/* Another file in its place is hashed from its beginning. */
	assert_int_equal(renameat(rig.fd, "catalog.jsonl", rig.fd, "old"), 0);
	unit_write(rig_full(&rig, "catalog.jsonl"), text, len);
	free(text);
	rig_restart(&rig, true);
	rows(1);
	rig_seal(&rig);
	w = (struct rig_found){0};
	rig_verify(&rig, &w);
	assert_string_equal(w.all, "");
}

/* A state that is not what was kept is not gone on from: later Seals are of what the files have. */
TEST(a_state_that_was_changed)
{
	static const char *const paths[] = {"catalog.jsonl", "logs/ava/2026-11-19.jsonl"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct rig_found w = {0};
		size_t len;
		char *text, *at;

		if (i > 0)
			rig_after(NULL);
		rig_init(&rig, 10);
		rows(50);
		rig_day_event(&rig);
		rig_seal(&rig);
		rig_restart(&rig, true);
		text = unit_read(rig_full(&rig, "seals/last"), &len);
		at = strstr(strstr(text, "\"going\""), paths[i]);
		at = strstr(at, "\"state\":\"") + 9;
		*at = *at == '0' ? '1' : '0';
		rig_put(&rig, "seals/last", text, len);
		free(text);
		rows(1);
		rig_day_event(&rig);
		rig_seal(&rig);
		rig_verify(&rig, &w);
		assert_string_equal(w.all, "");
	}
}

/* Nobody has signed what is behind the newest Seal; a line put in again is seen all the same. */
TEST(a_tail_that_does_not_go_on)
{
	static const char run[] = "logs/subagents/S-000005.jsonl";
	struct rig_found w = {0};
	char *text, *last;
	size_t len;

	rig_fill(&rig, 3);
	text = unit_read(rig_full(&rig, run), &len);
	last = (char *)memrchr(text, '\n', len - 1) + 1;
	rig_append(&rig, run, last, len - (size_t)(last - text));
	rig_verify(&rig, &w);
	assert_int_equal(w.broken, 1);
	assert_non_null(strstr(w.all, "line 1 behind the last seal does not go on from the one "
				      "before: lsn "));
	/* One that does. */
	rig_put(&rig, run, text, len);
	rig_some(&rig, run, "S-000005", 1000);
	w = (struct rig_found){0};
	rig_verify(&rig, &w);
	assert_int_equal(w.broken, 0);
	free(text);
}

/* ---- edits */

struct edit {
	char path[80];
	char *data; /* of the file before it */
	size_t len;
	uint64_t line; /* that must be named; 0: any */
	enum edit_kind {
		EDIT_BYTE,
		EDIT_SWAP,
		EDIT_LINE_OUT,
		EDIT_LINE_IN,
		EDIT_CUT,
		EDIT_OLDER_COPY,
		EDIT_NO_RUN,
		EDIT_NO_DAY,
		EDIT_NO_CATALOG,
		EDIT_KINDS
	} kind;
	char what[160];
};

/* Where the lines of the file begin; at[n] is its end. */
static size_t line_starts(const struct edit *e, size_t *at, size_t max)
{
	size_t n = 0;

	at[n++] = 0;
	for (size_t i = 0; i < e->len; i++)
		if (e->data[i] == '\n' && n < max)
			at[n++] = i + 1;
	return n - 1;
}

static void pick_file(struct seal_rig *r, struct edit *e)
{
	uint64_t k = rig_random(r) % 10;

	if (k < 6)
		snprintf(e->path, sizeof(e->path), "logs/subagents/S-00000%u.jsonl", (unsigned)k);
	else if (k < 9)
		snprintf(e->path, sizeof(e->path), "logs/ava/2026-11-%u.jsonl",
			 (unsigned)(19 + k - 6));
	else
		snprintf(e->path, sizeof(e->path), "catalog.jsonl");
	e->data = unit_read(rig_full(r, e->path), &e->len);
}

static void edit_byte(struct seal_rig *r, struct edit *e)
{
	size_t at = rig_random(r) % e->len;
	char *copy = malloc(e->len), old = e->data[at];

	memcpy(copy, e->data, e->len);
	while (copy[at] == old)
		copy[at] = (char)rig_random(r);
	rig_put(r, e->path, copy, e->len);
	e->kind = EDIT_BYTE;
	e->line = 1;
	for (size_t i = 0; i < at; i++)
		e->line += e->data[i] == '\n';
	snprintf(e->what, sizeof(e->what), "byte %zu of %s from %02x to %02x", at, e->path,
		 (unsigned char)old, (unsigned char)copy[at]);
	free(copy);
}

/* Lines [a, b) of the file move behind those [b, c); or are left out. */
static void write_moved(struct seal_rig *r, struct edit *e, const size_t *at, size_t a, size_t b,
			size_t c, bool drop)
{
	TEST_BUF(out, 16u << 20);

	buf_add(&out, e->data, at[a]);
	buf_add(&out, e->data + at[b], at[c] - at[b]);
	if (!drop)
		buf_add(&out, e->data + at[a], at[b] - at[a]);
	buf_add(&out, e->data + at[c], e->len - at[c]);
	assert_int_equal(buf_check(&out), 0);
	rig_put(r, e->path, out.data ? out.data : "", out.len);
}

static void edit_lines(struct seal_rig *r, struct edit *e, int how)
{
	size_t at[2000], n = line_starts(e, at, 2000), a = rig_random(r) % (n - 1),
			 c = a + 2 + rig_random(r) % (n - a - 1);

	snprintf(e->what, sizeof(e->what), "%s of line %zu of %s",
		 how == 0   ? "swap"
		 : how == 1 ? "removal"
			    : "insertion",
		 a + 1, e->path);
	e->kind = EDIT_SWAP + (enum edit_kind)how;
	e->line = a + 1;
	if (how == 0) {
		write_moved(r, e, at, a, a + 1, c, false);
	} else if (how == 1) {
		write_moved(r, e, at, a, a + 1, a + 1, true);
	} else { /* a line of elsewhere again */
		TEST_BUF(out, 16u << 20);

		buf_add(&out, e->data, at[a]);
		buf_add(&out, e->data + at[c - 1], at[c] - at[c - 1]);
		buf_add(&out, e->data + at[a], e->len - at[a]);
		rig_put(r, e->path, out.data, out.len);
	}
}

static void edit_cut(struct seal_rig *r, struct edit *e, bool at_line)
{
	size_t at[2000], n = line_starts(e, at, 2000);
	size_t len = at_line ? at[rig_random(r) % n] : rig_random(r) % e->len;

	rig_put(r, e->path, e->data, len);
	e->kind = at_line ? EDIT_OLDER_COPY : EDIT_CUT;
	snprintf(e->what, sizeof(e->what), "%s to %zu of %zu bytes: %s",
		 at_line ? "an older copy" : "cut", len, e->len, e->path);
}

static void apply_edit(struct seal_rig *r, struct edit *e)
{
	int how = (int)(rig_random(r) % 7);

	*e = (struct edit){0};
	pick_file(r, e);
	if (how <= 1) {
		edit_byte(r, e);
	} else if (how <= 3 || how == 6) {
		edit_lines(r, e, how == 6 ? 2 : how - 2);
	} else if (rig_random(r) % 4 == 0) {
		unlink(rig_full(r, e->path));
		e->kind = strncmp(e->path, "logs/a", 6) == 0   ? EDIT_NO_DAY
			  : strncmp(e->path, "logs/s", 6) == 0 ? EDIT_NO_RUN
							       : EDIT_NO_CATALOG;
		snprintf(e->what, sizeof(e->what), "removal of %s", e->path);
	} else {
		edit_cut(r, e, how == 4);
	}
}

TEST(thousand_edits)
{
	const char *given = getenv("AVA_SEED");
	unsigned kinds[EDIT_KINDS] = {0};

	print_message("seed %llu (AVA_SEED)\n", (unsigned long long)rig.seed);
	rig_fill(&rig, given ? strtoull(given, NULL, 0) : 20261121);
	expect_whole(&rig);
	for (int i = 0; i < 1000; i++) {
		struct rig_found w = {0};
		struct edit e;

		apply_edit(&rig, &e);
		kinds[e.kind]++;
		w.want = e.path;
		w.want_line = e.line;
		rig_verify(&rig, &w);
		if (!w.hit)
			fail_msg("edit %d, %s: wanted %s:%llu, found\n%s", i, e.what, e.path,
				 (unsigned long long)e.line, w.all);
		rig_put(&rig, e.path, e.data, e.len);
		free(e.data);
	}
	expect_whole(&rig);
	for (int i = 0; i < EDIT_KINDS; i++)
		assert_in_range(kinds[i], i == EDIT_NO_CATALOG ? 1 : 5, 1000);
}

/* ---- a root that was sealed once for all, with the key 00 01 02 … 1f */

static const char *const golden[] = {
	"logs/ava/2026-11-21.jsonl",
	"logs/subagents/S-7f3a2b.jsonl",
	"runs/S-7f3a2b/messages.jsonl",
	"catalog.jsonl",
	"seals/public",
	"seals/last",
	"seals/key",
};
#define GOLDEN_SEALED 4 /* of these */

static void golden_copy(struct seal_rig *r)
{
	char src[200];

	rig_init(r, 1);
	mkdir(rig_full(r, "runs/S-7f3a2b"), 0700);
	mkdir(rig_full(r, "seals"), 0700);
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		size_t len;
		char *data;

		snprintf(src, sizeof(src), "test/golden/seals/%s", golden[i]);
		data = unit_read_src(src, &len);
		rig_put(r, golden[i], data, len);
		free(data);
	}
}

TEST(golden)
{
	struct rig_found w = {0};
	struct ava_verified report;

	golden_copy(&rig);
	report = rig_verify(&rig, &w);
	assert_string_equal(w.all, "");
	assert_int_equal(report.seals, 2);
	assert_int_equal(report.files, 4);
	assert_string_equal(report.newest.hash,
			    "e20fb004f77f794ea48f54c2c4b75acb661e43eac8356e6f9531d67b45bd06fe");
	assert_string_equal(report.newest.key,
			    "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8");
}

/* What doc/SEALS.md says of the form, with nothing of the verifier: the head
 * is a plain hash of the file, the signature is that of the key. */
TEST(golden_by_hand)
{
	char hex[HASH_HEX_LEN + 1], sig_hex[2 * SEAL_SIG + 1], *log, *run, *key;
	unsigned char sig[SEAL_SIG], pub[SEAL_KEY];
	const char *content, *end;
	size_t len;

	golden_copy(&rig);
	run = unit_read(rig_full(&rig, "logs/subagents/S-7f3a2b.jsonl"), &len);
	hash_sha256_hex(run, len, hex);
	free(run);
	log = unit_read(rig_full(&rig, "logs/ava/2026-11-21.jsonl"), &len);
	content = strstr(log, "{\"n\":2,");
	assert_non_null(content);
	end = strstr(content, ",\"sig\":\"");
	assert_non_null(end);
	assert_non_null(strstr(content, hex));
	snprintf(sig_hex, sizeof(sig_hex), "%s", end + strlen(",\"sig\":\""));
	assert_true(hash_unhex(sig_hex, sig, SEAL_SIG));
	key = unit_read(rig_full(&rig, "seals/public"), &len);
	assert_memory_equal(key, "ed25519 ", 8);
	key[8 + 64] = '\0';
	assert_true(hash_unhex(key + 8, pub, SEAL_KEY));
	assert_int_equal(crypto_sign_verify_detached(sig, (const unsigned char *)content,
						     (size_t)(end - content), pub),
			 0);
	free(key);
	free(log);
}

/* Each bit in turn, each length, and what stands beside the logs. */
TEST(golden_every_byte)
{
	struct rig_found w = {0};

	golden_copy(&rig);
	for (size_t i = 0; i < GOLDEN_SEALED; i++) {
		size_t len;
		char *data = unit_read(rig_full(&rig, golden[i]), &len);

		w.want = golden[i];
		for (size_t at = 0; at < len; at++) {
			data[at] ^= (char)(1 << at % 8);
			rig_put(&rig, golden[i], data, len);
			data[at] ^= (char)(1 << at % 8);
			rig_verify(&rig, &w);
			if (!w.hit)
				fail_msg("%s, byte %zu is flipped: %s", golden[i], at, w.all);
			rig_put(&rig, golden[i], data, at);
			rig_verify(&rig, &w);
			if (!w.hit)
				fail_msg("%s, cut at %zu: %s", golden[i], at, w.all);
		}
		rig_put(&rig, golden[i], data, len);
		free(data);
	}
	rig_verify(&rig, &w);
	assert_string_equal(w.all, "");
}

/* Another key in the list, no list, another newest Seal: told; no newest one:
 * a note, since nothing can be known. */
TEST(golden_beside)
{
	struct rig_found w = {.want = golden[0]};
	size_t len;
	char *data;

	golden_copy(&rig);
	data = unit_read(rig_full(&rig, "seals/public"), &len);
	for (size_t at = 0; at < strlen("ed25519 ") + 64; at++) {
		data[at] ^= 1;
		rig_put(&rig, "seals/public", data, len);
		data[at] ^= 1;
		rig_verify(&rig, &w);
		if (!w.hit || !strstr(w.all, "does not name"))
			fail_msg("byte %zu of seals/public: %s", at, w.all);
	}
	unlink(rig_full(&rig, "seals/public"));
	rig_verify(&rig, &w);
	assert_true(w.hit);
	rig_put(&rig, "seals/public", data, len);
	free(data);

	data = unit_read(rig_full(&rig, "seals/last"), &len);
	for (size_t at = 0; at < len - 1; at++) {
		data[at] ^= 1;
		rig_put(&rig, "seals/last", data, len);
		data[at] ^= 1;
		rig_verify(&rig, &w);
		if (w.n == 0)
			fail_msg("byte %zu of seals/last: nothing is said", at);
	}
	rig_put(&rig, "seals/last", data, len);
	free(data);
	rig_verify(&rig, &w);
	assert_string_equal(w.all, "");
}

/* ---- a file that goes, and another in its place: a run that comes back from another machine */

TEST(another_in_its_place)
{
	static const char path[] = "logs/subagents/S-000005.jsonl";
	struct rig_found w = {.want = path};

	rig_fill(&rig, 11);
	rig_some(&rig, path, "S-000005", 100);
	rig_seal_gone(&rig, path);
	assert_int_equal(unlink(rig_full(&rig, path)), 0);
	rig_verify(&rig, &w);
	assert_int_equal(w.broken, 0);
	for (uint64_t seq = 1; seq <= 2; seq++) { /* the same sealer goes on with the other file */
		rig_some(&rig, path, "S-000005", seq);
		rig_seal(&rig);
	}
	rig_verify(&rig, &w);
	assert_int_equal(w.broken, 0);
	assert_null(strstr(w.all, path)); /* nothing of it is unsealed */
	assert_int_equal(unlink(rig_full(&rig, path)), 0);
	rig_verify(&rig, &w);
	assert_true(w.hit);
	assert_non_null(strstr(w.first, "it is missing"));
}

/* ---- `ava prune` beside it */

static struct {
	struct seal_rig *r;
	const char *at; /* when this file is opened, for the first time */
	bool look;      /* no: when it is looked at */
	struct sys_ops ops;
} prune;

/* The first day goes, and the two runs that were at work on it. */
static void prune_now(struct seal_rig *r)
{
	static const char *const gone[] = {"logs/subagents/S-000000.jsonl",
					   "logs/subagents/S-000001.jsonl",
					   "logs/ava/2026-11-19.jsonl"};
	struct seal_newest base = {0};
	struct seal_list out = {0};
	struct ava_error err = {0};
	char hex[2 * SEAL_HASH + 1];
	TEST_BUF(b, 4096);

	assert_int_equal(seal_find_in(r->fd, gone[2], &base, &err), 1);
	hash_hex(base.hash, SEAL_HASH, hex);
	buf_addf(&b,
		 "{\"upTo\":%llu,\"hash\":\"%s\",\"files\":[{\"path\":\"%s\"},"
		 "{\"path\":\"%s\"},{\"path\":\"%s\"}]}",
		 (unsigned long long)base.n, hex, gone[0], gone[1], gone[2]);
	rig_day_event(r);
	assert_int_equal(sealer_round(r->sealer, r->touched, r->ntouched, b.data, &out, &err), 0);
	for (size_t i = 0; i < out.n; i++)
		rig_event(r, r->day, EVENT_Seal, "ava", ++r->day_seq, out.contents[i].data);
	assert_int_equal(sealer_committed(r->sealer, r->day, &err), 0);
	seal_list_fini(&out);
	rig_forget(r);
	for (size_t i = 0; i < ARRAY_LEN(gone); i++)
		assert_int_equal(unlink(rig_full(r, gone[i])), 0);
}

static void prune_at(const char *path, bool look)
{
	if (prune.at == NULL || prune.look != look || strcmp(path, prune.at) != 0)
		return;
	prune.at = NULL;
	prune_now(prune.r);
}

static int open_pruned(int dirfd, const char *path, int flags, mode_t mode)
{
	prune_at(path, false);
	return sys_real.openat(dirfd, path, flags, mode);
}

static int stat_pruned(int dirfd, const char *path, struct stat *st, int flags)
{
	prune_at(path, true);
	return sys_real.fstatat(dirfd, path, st, flags);
}

/* What goes while it is looked at is not told as missing: the new Seal names it. */
TEST(pruned_meanwhile)
{
	static const struct {
		const char *at;
		bool look;
	} moments[] = {
		{"logs/ava/2026-11-19.jsonl", false},     /* before its Seals are read */
		{"logs/ava/2026-11-20.jsonl", false},     /* behind them */
		{"logs/ava/2026-11-19.jsonl", true},      /* behind all of them */
		{"logs/subagents/S-000000.jsonl", false}, /* its turn has come */
	};

	for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
		struct rig_found w = {0};

		if (i > 0)
			rig_after(NULL);
		rig_fill(&rig, 7);
		prune.r = &rig;
		prune.ops = sys_real;
		prune.ops.openat = open_pruned;
		prune.ops.fstatat = stat_pruned;
		prune.at = moments[i].at;
		prune.look = moments[i].look;
		sys = &prune.ops;
		rig_verify(&rig, &w);
		sys = &sys_real;
		assert_null(prune.at);
		if (w.broken > 0)
			fail_msg("%zu: %s", i, w.all);
		rig_verify(&rig, &w);
		assert_int_equal(w.broken, 0);
		assert_non_null(strstr(w.all, "was pruned"));
	}
}

UNIT_GROUP(.after = rig_after);
