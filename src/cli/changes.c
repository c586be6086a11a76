/* A model chose the paths in a result: they are shown as text of unknown
 * origin, each on a line of its own. Members that are not there count as nothing, so that a
 * result of another version is shown as far as it goes. */
#include "cli/changes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/patch.h"

static void changes_lines(FILE *f, const json_t *patch)
{
	int64_t files = json_get_int(patch, "files", 0), more;
	const json_t *list = json_object_get(patch, "changed"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *how = json_str(one, "how");

		term_print(f, "  %s  +%" PRId64 " -%" PRId64 "%s%s\n", json_str(one, "path"),
			   json_get_int(one, "added", 0), json_get_int(one, "removed", 0),
			   strcmp(how, "new") == 0       ? "  (new)"
			   : strcmp(how, "deleted") == 0 ? "  (deleted)"
							 : "",
			   patch_obeyed(json_str(one, "path"))
				   ? "  (programs or agents obey it: asked about by itself)"
				   : "");
	}
	if (files > (int64_t)json_array_size(list))
		fprintf(f, "  and %" PRId64 " more\n", files - (int64_t)json_array_size(list));
	fprintf(f, "  %" PRId64 " %s, +%" PRId64 " -%" PRId64 "\n", files,
		files == 1 ? "file" : "files", json_get_int(patch, "added", 0),
		json_get_int(patch, "removed", 0));
	list = json_object_get(patch, "left_out");
	json_array_foreach(list, i, one)
	{
		term_print(f, "  left out: %s (%s)\n", json_str(one, "path"), json_str(one, "why"));
	}
	more = json_get_int(patch, "left_out_files", 0) - (int64_t)json_array_size(list);
	if (more > 0)
		fprintf(f, "  left out: %" PRId64 " more\n", more);
}

void changes_show(FILE *f, const json_t *patch)
{
	char *text = NULL;
	size_t len = 0;
	FILE *lines = open_memstream(&text, &len);

	if (lines != NULL)
		changes_lines(lines, patch);
	if (lines != NULL && fclose(lines) == 0)
		term_put(f, term_width(f), text, len, 0, 0);
	free(text);
}

void changes_section(FILE *f, const json_t *result)
{
	const json_t *patch = json_object_get(result, "patch");
	const char *id = json_str(result, "subagent_id");

	if (!json_is_object(patch))
		return;
	fputc('\n', f);
	term_colour(f, TERM_BOLD);
	fputs("Changes it proposes", f);
	term_colour(f, TERM_PLAIN);
	fputs(" (nothing is written to your files yet)\n", f);
	changes_show(f, patch);
	if (json_get_int(patch, "files", 0) > 0)
		term_print(f, "  Do they fit: ava apply %s --check; write them: ava apply %s\n", id,
			   id);
}

void changes_offer(FILE *f, const json_t *result)
{
	int64_t files = json_get_int(json_object_get(result, "patch"), "files", 0);

	if (files > 0)
		term_line(f, WORDS_PROPOSES(files, json_str(result, "subagent_id")));
}
