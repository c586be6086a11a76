/* One request; the array in its answer is shown as JSON on one line, or as a
 * table fitted to the terminal, or a sentence says that there is none. Fails
 * when there is no daemon to ask, or no memory. */
#include "cli/listing.h"

#include <stdio.h>

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"

static int print_table(const struct listing *l, const json_t *list)
{
	struct table t;
	const json_t *one;
	size_t i;
	int rv;

	if (json_array_size(list) == 0) {
		puts(l->none);
		return CLI_DONE;
	}
	table_init(&t, l->columns);
	t.spare = l->spare;
	for (i = 0; i < l->columns; i++)
		table_add(&t, l->titles[i]);
	json_array_foreach(list, i, one) l->add_row(&t, one);
	rv = table_print(&t, stdout);
	table_fini(&t);
	return rv == 0 ? CLI_DONE : cli_error(CLI_FAILED, "out of memory");
}

int listing_show(const struct listing *l, const char *path, bool json)
{
	struct ava_error err;
	struct client *c;
	json_t *reply = NULL;
	int rv = api_open(true, &c, &err), code = CLI_DONE;

	if (rv == 0)
		rv = api_get(c, &reply, &err, "%s", path);
	if (rv != 0)
		code = cli_fail(&err);
	else if (json)
		show_json(stdout, json_object_get(reply, l->key));
	else
		code = print_table(l, json_object_get(reply, l->key));
	json_decref(reply);
	client_close(c);
	return code;
}
