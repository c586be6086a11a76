/* Skills: what their SKILL.md say. Front matter is read as generously as that of roles: other
 * programs' keys are noted, not refused.
 *
 * What can fail: a folder over the limits, a file that is no skill, memory. */
#include "subagent/skillbook.h"

#include <ava.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/front.h"
#include "codec/utf8.h"
#include "tool/skill.h"

#define NOTES_MAX 4096

/* ---- SKILL.md */

static enum front_key skill_key(const char *key, size_t len)
{
	static const char *const known[] = {
		"name",          "license", "allowed-tools",           "metadata",
		"compatibility", "version", "disable-model-invocation"};

	if (len == 11 && strncasecmp(key, "description", len) == 0)
		return FRONT_TEXT;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i]) == len && strncasecmp(key, known[i], len) == 0)
			return FRONT_FIELD;
	return FRONT_UNKNOWN;
}

/* "PDF Tools" to "pdf-tools"; "": nothing of it can be a name. */
static void skill_name(const char *text, char out[SKILL_NAME_MAX + 1])
{
	size_t n = 0;

	for (; *text && n < SKILL_NAME_MAX; text++) {
		bool word = isalnum((unsigned char)*text) || strchr("._-", *text);

		if (word && (n > 0 || isalnum((unsigned char)*text)))
			out[n++] = (char)tolower((unsigned char)*text);
		else if (!word && n > 0 && out[n - 1] != '-')
			out[n++] = '-';
	}
	while (n > 0 && out[n - 1] == '-')
		n--;
	out[n] = '\0';
}

/* The description on one line. */
static char *skill_summary(const char *text)
{
	struct buf line, safe;
	char *out;
	size_t cut;

	buf_init(&line, SKILL_TEXT_MAX);
	buf_init(&safe, 8 * SKILL_TEXT_MAX);
	for (; *text; text++)
		if (!strchr(" \t\r\n\f\v", *text))
			buf_addc(&line, *text);
		else if (line.len > 0 && line.data[line.len - 1] != ' ')
			buf_addc(&line, ' ');
	while (line.len > 0 && line.data[line.len - 1] == ' ')
		line.len--;
	cut = utf8_prefix(line.data ? line.data : "", line.len, SKILL_SUMMARY_MAX);
	utf8_terminal(&safe, line.data ? line.data : "", cut, false);
	buf_adds(&safe, cut < line.len ? "…" : "");
	out = buf_take(&safe, NULL);
	buf_fini(&line);
	buf_fini(&safe);
	return out;
}

static void skill_notes(struct skill *s, const struct yaml_node *root, unsigned left)
{
	struct buf b;

	buf_init(&b, NOTES_MAX);
	for (const struct yaml_node *n = root->first; n && b.len < NOTES_MAX - 200; n = n->next) {
		size_t len = strlen(n->key);

		if (len == 13 && strncasecmp(n->key, "allowed-tools", len) == 0)
			buf_addf(&b, "%u: allowed-tools: tools are the run's, never a file's\n",
				 n->key_line);
		else if (skill_key(n->key, len) == FRONT_UNKNOWN)
			buf_addf(&b, "%u: %.40s: there is no such field, it is not used\n",
				 n->key_line, n->key);
	}
	if (left > 0)
		buf_addf(&b,
			 "0: %u link%s or other entries that are no plain files are no part "
			 "of it\n",
			 left, left == 1 ? "" : "s");
	s->notes = buf_take(&b, NULL);
	buf_fini(&b);
}

static const struct yaml_node *skill_field(const struct yaml_node *root, const char *name)
{
	for (const struct yaml_node *n = root->first; n; n = n->next)
		if (strcasecmp(n->key, name) == 0 && n->kind == YAML_SCALAR && !yaml_is_null(n))
			return n;
	return NULL;
}

/* Fills name, summary and notes from the text of SKILL.md. */
static int skill_read(struct skill *s, const char *at, const struct skill_file *f, unsigned left,
		      struct ava_error *err)
{
	const struct yaml_node *name, *description, *named;
	char path[4096], said[SKILL_NAME_MAX + 1] = "";
	const char *folder = strrchr(at, '/');
	struct front front = {0};
	int rv;

	snprintf(path, sizeof(path), "%s/%s", at, f->path);
	rv = front_read(&front, path, f->data, f->len, SKILL_TEXT_MAX, skill_key, err);
	if (rv == 0 && yaml_root(front.yaml)->kind != YAML_MAP)
		rv = err_set(err, AVA_EINVAL,
			     "%s:%u: the front matter must be lines such as name: my-skill", path,
			     front.line + 1);
	if (rv == 0) {
		name = skill_field(yaml_root(front.yaml), "name");
		description = skill_field(yaml_root(front.yaml), "description");
		skill_name(name ? name->text : folder ? folder + 1 : "", said);
		s->summary = skill_summary(description ? description->text : "");
		if (!said[0])
			rv = err_set(err, AVA_EINVAL,
				     "%s:%u: nothing of its name can be a name here: letters, "
				     "digits, - and _",
				     path, name ? name->line : 1);
		else if (s->summary && !s->summary[0])
			rv = err_set(err, AVA_EINVAL,
				     "%s:%u: the description is missing: write what it is for",
				     path, front.line);
		skill_notes(s, yaml_root(front.yaml), left);
		named = skill_field(yaml_root(front.yaml), "disable-model-invocation");
		s->named = named && strcasecmp(named->text, "true") == 0;
		s->name = strdup(said);
		if (!s->summary || !s->notes || !s->name)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	front_fini(&front);
	return rv;
}

/* ---- the book */

/* '-' equal to '_' and to a blank, any case. */
static bool skill_is(const void *it, const char *name)
{
	const char *a = ((const struct skill *)it)->name;

	for (; *a && *name; a++, name++) {
		char x = *a == '_' ? '-' : *a, y = *name == '_' || *name == ' ' ? '-' : *name;

		if (tolower((unsigned char)x) != tolower((unsigned char)y))
			return false;
	}
	return *a == *name;
}

static bool skill_takes(const char *path, unsigned char type)
{
	static const char *const names[] = {SKILL_FILE, "skill.md", "Skill.md"};
	char file[4096 + 16];
	struct stat st;

	for (size_t i = 0; type != DT_REG && i < ARRAY_LEN(names); i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		if (lstat(file, &st) == 0)
			return true;
	}
	return false;
}

static void skill_drop(const void *it)
{
	struct skill *s = (struct skill *)it;

	free(s->name);
	free(s->summary);
	free(s->notes);
	free(s);
}

static int skill_from(const char *path, enum role_source source, const void **it,
		      struct ava_error *err)
{
	struct skill *s = calloc(1, sizeof(*s));
	const struct skill_file *text;
	struct skill_files f = {0};
	int rv = s ? skill_load(path, &f, err) : err_set(err, AVA_ENOMEM, "out of memory");

	(void)source;
	text = rv == 0 ? skill_file_of(&f, "") : NULL;
	if (rv == 0 && !text)
		rv = err_set(err, AVA_ENOENT, "%s holds no " SKILL_FILE, path);
	else if (rv != 0)
		err_wrap(err, rv, "%s", path);
	if (rv == 0)
		rv = skill_read(s, path, text, f.left, err);
	if (rv == 0) {
		memcpy(s->hash, f.hash, sizeof(s->hash));
		s->files = (unsigned)f.n;
		s->bytes = f.bytes;
		*it = s;
	} else if (s) {
		skill_drop(s);
	}
	skill_files_fini(&f);
	return rv;
}

const struct book book_of_skills = {
	.one = "skill",
	.all = "skills",
	.files = "skills",
	.project = {".claude/skills", ".agents/skills"},
	.user = "skills",
	.claude = ".claude/skills",
	.name = offsetof(struct skill, name),
	.hash = offsetof(struct skill, hash),
	.takes = skill_takes,
	.read = skill_from,
	.is = skill_is,
	.drop = skill_drop,
};
