/* The folder of a skill: what is part of it, what its hash says, and read_skill, which opens only
 * what was confirmed and lays a copy that no link of the model's leads astray. */
#include "tool_unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "tool/skill.h"

static char folder[1024], hash[HASH_HEX_LEN + 1];
static struct tool_skill one = {.name = "pdf", .path = folder, .hash = hash};

static void put_part(const char *name, const char *text)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unit_write(path, text, strlen(text));
}

static void hash_now(void)
{
	struct ava_error err = {0};
	struct skill_files f;

	if (skill_load(folder, &f, &err) != 0)
		fail_msg("%s", err.text);
	snprintf(hash, sizeof(hash), "%s", f.hash);
	skill_files_fini(&f);
}

static int set_up(void **state)
{
	char path[2048];

	tool_unit_open(state);
	snprintf(folder, sizeof(folder), "%s/skill", u.top);
	mkdir(folder, 0700);
	snprintf(path, sizeof(path), "%s/scripts", folder);
	mkdir(path, 0700);
	put_part("SKILL.md", "Run scripts/x.sh.");
	put_part("scripts/x.sh", "#!/bin/sh\necho yes\n");
	put_part("data.bin", "\xff\xfe");
	snprintf(path, sizeof(path), "%s/scripts/x.sh", folder);
	chmod(path, 0755);
	hash_now();
	u.env.skills = &one;
	u.env.nskills = 1;
	return 0;
}

TEST(reads)
{
	const char *out = tool_unit_ok("read_skill", "{'name':'PDF'}");

	assert_string_equal(out, "Run scripts/x.sh.\n\nFiles beside it: data.bin (2 B), "
				 "scripts/x.sh (19 B)\n");
	assert_string_equal(tool_unit_ok("read_skill", "{'name':'pdf','file':'./scripts/x.sh'}"),
			    "#!/bin/sh\necho yes\n");
	assert_holds(tool_unit_ok("read_skill", "{'name':'pdf','file':'data.bin'}"), "is no text");
	assert_holds(tool_unit_fails("read_skill", "{'name':'pdf','file':'../x'}", "not_found"),
		     "has no file ../x");
	assert_holds(tool_unit_fails("read_skill", "{'name':'doc'}", "not_found"),
		     "there is no skill doc; there are pdf");
}

/* Any byte, any name, and who may run a file. */
TEST(changed)
{
	char was[HASH_HEX_LEN + 1], path[2048];

	strcpy(was, hash);
	put_part("scripts/x.sh", "#!/bin/sh\necho no!\n");
	assert_holds(tool_unit_fails("read_skill", "{'name':'pdf'}", "denied"),
		     "has changed since this run was confirmed");
	put_part("scripts/x.sh", "#!/bin/sh\necho yes\n");
	hash_now();
	assert_string_equal(hash, was);
	snprintf(path, sizeof(path), "%s/scripts/x.sh", folder);
	chmod(path, 0644);
	hash_now();
	assert_string_not_equal(hash, was);
	chmod(path, 0755);
	put_part("more", "");
	hash_now();
	assert_string_not_equal(hash, was);
	snprintf(path, sizeof(path), "%s/more", folder);
	unlink(path);
	put_part(".hidden", "x");
	hash_now();
	assert_string_equal(hash, was);
	unit_rmdir(folder);
	assert_holds(tool_unit_fails("read_skill", "{'name':'pdf'}", "not_found"),
		     "go on without it");
}

/* Links and FIFOs are no part of it, and hold nobody up; too much is refused. */
TEST(odd)
{
	struct ava_error err = {0};
	struct skill_files f;
	uint64_t stamp, again;
	char path[2048];
	bool settled;
	int fd;

	snprintf(path, sizeof(path), "%s/out", folder);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(skill_load(folder, &f, &err), 0);
	assert_int_equal(f.n, 3);
	assert_int_equal(f.left, 2);
	assert_string_equal(f.hash, hash);
	assert_null(skill_file_of(&f, "out"));
	skill_files_fini(&f);
	assert_int_equal(skill_stamp(folder, &stamp, &settled, &err), 0);
	put_part("data.bin", "other");
	assert_int_equal(skill_stamp(folder, &again, &settled, &err), 0);
	assert_true(stamp != again);
	assert_false(settled);
	snprintf(path, sizeof(path), "%s/huge", folder);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, SKILL_BYTES_MAX), 0);
	close(fd);
	assert_int_equal(skill_load(folder, &f, &err), AVA_ETOOBIG);
	unlink(path);
	for (unsigned i = 0; i < SKILL_FILES_MAX; i++) {
		snprintf(path, sizeof(path), "f%u", i);
		put_part(path, "");
	}
	assert_int_equal(skill_load(folder, &f, &err), AVA_ETOOBIG);
	assert_int_equal(skill_load("/nowhere", &f, &err), AVA_ENOENT);
}

/* The copy for commands: exact, and never through a link that a command has laid. */
TEST(copied)
{
	char root[1024], path[4096], victim[2048], text[64] = "";
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(root, sizeof(root), "%s/root", u.top);
	mkdir(root, 0700);
	u.env.root = root;
	snprintf(u.env.workspace, sizeof(u.env.workspace), "runs/S-1/work");
	u.env.commands = true;
	assert_holds(tool_unit_ok("read_skill", "{'name':'pdf'}"), "lies in ~/.skills/pdf");
	snprintf(path, sizeof(path), "%s/runs/S-1/work/.skills/pdf/scripts/x.sh", root);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);

	snprintf(victim, sizeof(victim), "%s/victim", u.top);
	unit_write(victim, "mine", 4);
	unlink(path);
	assert_int_equal(symlink(victim, path), 0);
	tool_unit_ok("read_skill", "{'name':'pdf'}");
	fd = open(victim, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_int_equal(n, 4);
	assert_string_equal(text, "mine");
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));

	/* The folder itself as a link. */
	snprintf(path, sizeof(path), "%s/runs/S-1/work/.skills", root);
	unit_rmdir(path);
	snprintf(victim, sizeof(victim), "%s/elsewhere", u.top);
	mkdir(victim, 0700);
	assert_int_equal(symlink(victim, path), 0);
	tool_unit_ok("read_skill", "{'name':'pdf'}");
	snprintf(path, sizeof(path), "%s/pdf", victim);
	assert_int_equal(access(path, F_OK), -1);
}

UNIT_GROUP(.before = set_up, .after = tool_unit_close);
