/* Order: config_load is the caller's, since the environment that counts is; then folder,
 * lock, loop, secrets, runtime; back in the other order. What can fail: every step, with a
 * sentence; house_close takes a house that is open in part. */
#include "ava/house.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/otel.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/sys.h"
#include "cluster/cluster.h"
#include "codec/redact.h"
#include "os/loop.h"
#include "tool/mcp.h"
#include "tool/pages.h"

int house_hold(struct house *h, const char *root, bool make, struct ava_error *err)
{
	int rv = 0;

	if (!root)
		rv = settings_data_root(h->root, sizeof(h->root), err);
	else if ((size_t)snprintf(h->root, sizeof(h->root), "%s", root) >= sizeof(h->root))
		rv = err_set(err, AVA_EINVAL, "the path of the data root is too long");
	if (rv == 0 && make && sys_make_folders(h->root, true) != 0)
		rv = err_sys(err, "the data root needs the folder %.300s", h->root);
	if (rv != 0)
		return rv;
	h->root_fd = open(h->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (h->root_fd < 0)
		return err_sys(err, "data root %.300s", h->root);
	rv = settings_check_root(h->root_fd, h->root, err);
	if (rv != 0)
		return rv;
	if (faccessat(h->root_fd, ".", W_OK, 0) != 0)
		return err_set(err, AVA_EDENIED, "the data root %.300s is not writable%s", h->root,
			       root ? "" : ": set AVA_DATA_ROOT to a folder that is");
	(void)fchmod(h->root_fd, 0700); /* other users must not read the root */
	rv = lock_take(&h->lock, h->root_fd, err);
	return rv == 0 ? 0 : err_wrap(err, rv, "%.200s", h->root);
}

int house_loop(struct house *h, struct ava_error *err)
{
	int rv;

	h->loop = os_loop_new(err);
	rv = h->loop ? os_pool_start(h->loop, err) : err->code;
	if (rv != 0)
		return rv;
	h->redact = redact_new();
	if (!h->redact)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return config_secrets(h->redact, err);
}

static struct pages_options pages_of(const struct config *c)
{
	const struct settings *set = &c->settings;

	return (struct pages_options){
		.allow_private = c->web_inside,
		.robots = set->web_robots,
		.parallel = (unsigned)set->web_parallel,
		.per_host = (unsigned)set->web_per_host,
		.host_gap_ms = set->web_host_gap_ms,
		.searxng = c->searxng,
		.brave = keys_get("BRAVE_API_KEY"),
		.brave_url = keys_get("BRAVE_BASE_URL"),
		.tavily = keys_get("TAVILY_API_KEY"),
		.tavily_url = keys_get("TAVILY_BASE_URL"),
	};
}

const char *house_search(const struct config *c)
{
	struct pages_options o = pages_of(c);

	o.searxng = o.searxng[0] ? o.searxng : NULL;
	return pages_search_service(&o);
}

int house_mcp(struct mcp_client **out, struct os_loop *loop, const char *root,
	      struct redact *redact, struct ava_error *err)
{
	char path[4096];

	if (settings_config_path("mcp.json", path, sizeof(path), NULL) != 0)
		return 0; /* without a home there is no file */
	return mcp_client_new(out, loop, path, root, redact, err);
}

int house_open(struct house *h, struct core_options *o, struct ava_error *err)
{
	struct pages_options web = pages_of(&h->config);
	int rv = house_mcp(&h->mcp, h->loop, h->root, h->redact, err);

	if (rv != 0)
		return rv;
	mcp_client_keep_free(h->mcp, (uint64_t)h->config.settings.disk_free_min_mb);
	o->mcp = h->mcp;
	o->loop = h->loop;
	o->root = h->root;
	o->settings = &h->config.settings;
	o->redact = h->redact;
	o->notify = h->config.notify;
	o->notify_url = h->config.notify_url;
	o->notify_format = h->config.notify_format;
	o->notify_secret = keys_get("AVA_NOTIFY_SECRET");
	o->cluster_folders = h->config.folders;
	if (o->otel)
		o->otel_headers = keys_get(OTEL_HEADERS_NAME);
	if (o->fenced) {
		o->cluster = keys_get("AVA_CLUSTER_URL");
		o->cluster_read = keys_get("AVA_CLUSTER_READ_URL");
		o->cluster_name = keys_get("AVA_CLUSTER_NAME");
	}
	o->pages = &web;
	return core_open(&h->core, o, err);
}

int house_cluster(const char *word, struct os_loop *loop, struct buf *out, struct ava_error *err)
{
	bool tried = strcmp(word, "try") == 0;

	return cluster_command(tried ? "status" : word,
			       tried ? getenv("AVA_CLUSTER_URL") : keys_get("AVA_CLUSTER_URL"),
			       loop, out, err);
}

void house_stop(struct house *h)
{
	if (h->core)
		core_close(h->core);
	h->core = NULL;
	mcp_client_free(h->mcp);
	h->mcp = NULL;
}

void house_close(struct house *h)
{
	house_stop(h);
	if (h->loop)
		os_loop_free(h->loop);
	redact_free(h->redact);
	lock_drop(&h->lock);
	if (h->root_fd >= 0)
		close(h->root_fd);
	keys_wipe();
}
