/* config.yaml: settings, models, services. doc/CONFIG.md has all of it. */
#ifndef AVA_CONFIG_H
#define AVA_CONFIG_H

#include <stdbool.h>

#include "base/doors.h"
#include "base/settings.h"

struct ava_error;
struct redact;
struct yaml;
struct yaml_node;

/* notify.exec: words, each with its NUL, then an empty one. */
#define CONFIG_NOTIFY_BYTES 4096
#define CONFIG_NOTIFY_WORDS 32
#define CONFIG_OTEL_BYTES   256
#define CONFIG_WEB_BYTES    4096
#define CONFIG_WEB_WORDS    64
#define CONFIG_FOLDERS      64 /* of cluster.folders */
#define CONFIG_FOLDER_BYTES 16384

struct config {
	char path[4096]; /* of the file; "" without a home */
	bool exists;
	struct settings settings;                             /* defaults, file, environment */
	char notify[CONFIG_NOTIFY_BYTES];                     /* notify.exec; "": none */
	char notify_url[CONFIG_OTEL_BYTES], notify_format[8]; /* "": none; "": json */
	char otel[CONFIG_OTEL_BYTES];                         /* otel.endpoint; "": none */
	char searxng[CONFIG_OTEL_BYTES];                      /* web.searxng; "": none */
	/* metrics.listen, metrics.token (gateway/metrics.h reads them); "": none */
	char metrics_listen[CONFIG_OTEL_BYTES], metrics_token[CONFIG_OTEL_BYTES];
	char doors[DOORS_N]
		  [CONFIG_OTEL_BYTES];     /* addresses (base/doors.h); "": the service's own */
	char web_inside[CONFIG_WEB_BYTES]; /* web.allow_private; words as in notify */
	/* cluster.folders: words as in notify, "site=/srv/site"; each path is canonical */
	char folders[CONFIG_FOLDER_BYTES];
	struct settings_budget budgets[SETTINGS_BUDGETS]; /* those of `settings` */
};

/* Reads keys (base/keys.h), the file and the environment, and fills the tables of provider/. No
 * file is fine. Any fault is one sentence with file and line, or with the variable; the tables are
 * then as after a start without a file. */
int config_load(struct config *c, struct ava_error *err);
/* config_load from memory; `name` begins the sentences. For tests. */
int config_read(struct config *c, const char *name, const char *text, size_t len,
		struct ava_error *err);
/* Inside of reading: budget.folders, or budget.tags, of a document; and the variables of both
 * (config_budget.c). */
int config_take_budgets(struct config *c, const struct yaml *y, const struct yaml_node *n,
			bool folders, struct ava_error *err);
int config_budget_variables(struct config *c, struct ava_error *err);
/* Makes every key that config_load found a known secret. */
int config_secrets(struct redact *r, struct ava_error *err);

#endif
