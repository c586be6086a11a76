/* Settings: every key has a default and an environment override named after
 * its path (runs.max is AVA_RUNS_MAX); between them stands config.yaml
 * (ava/config.h). A bad value is an error that names the variable, never a
 * silent default. */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct ava_error;

#define SETTINGS_BUDGET_MOST 100000000

#define SETTINGS(X)                                                                                \
	/* field, key, default, least, most */                                                     \
	X(runs_max, "runs.max", 8, 1, 100000)                                                      \
	X(runs_queue_max, "runs.queue_max", 10000, 1, 1000000)                                     \
	/* seconds that a run waits for a person's answer, at most */                              \
	X(ask_timeout_s, "runs.ask_timeout", 604800, 1, 31536000)                                  \
	/* 1: runs read AGENTS.md or CLAUDE.md of their folder, and are offered skills */          \
	X(runs_instructions, "runs.instructions", 1, 0, 1)                                         \
	/* limits of a run in place of its role's: seconds (0: the role's), cents (-1: the role's) \
	 */                                                                                        \
	X(limits_timeout_s, "limits.timeout", 0, 0, 604800)                                        \
	X(limits_cost_cents, "limits.cost_cents", -1, -1, 1000000)                                 \
	X(limits_tokens, "limits.tokens", 100000, 1, 1000000000)                                   \
	X(limits_iterations, "limits.iterations", 20, 1, 100000)                                   \
	/* cents of a local day, week from Monday, and month, runs and Ava's turns together; 0: no \
	 * limit */                                                                                \
	X(budget_day_cents, "budget.day_cents", 0, 0, SETTINGS_BUDGET_MOST)                        \
	X(budget_week_cents, "budget.week_cents", 0, 0, SETTINGS_BUDGET_MOST)                      \
	X(budget_month_cents, "budget.month_cents", 0, 0, SETTINGS_BUDGET_MOST)                    \
	/* limits of one turn of Ava's: seconds, cents, tokens, calls of her model */              \
	X(ava_timeout_s, "ava.timeout", 0, 0, 604800)                                              \
	X(ava_cost_cents, "ava.max_cost_cents", 100, 0, 1000000)                                   \
	X(ava_tokens, "ava.max_tokens", 1000000, 1, 1000000000)                                    \
	X(ava_iterations, "ava.max_iterations", 30, 1, 100000)                                     \
	/* most tokens of memories shown at a conversation's beginning; 0: none */                 \
	X(memory_tokens, "memory.tokens", 1000, 0, 20000)                                          \
	X(proposal_expiry_s, "proposals.expiry", 600, 1, 86400)                                    \
	X(idle_exit_s, "daemon.idle_exit", 600, 0, 604800)                                         \
	X(journal_pace_us, "journal.pace_us", 2000, 0, 1000000)                                    \
	X(journal_checkpoint_mb, "journal.checkpoint_mb", 256, 1, 65536)                           \
	X(journal_checkpoint_s, "journal.checkpoint_s", 30, 1, 86400)                              \
	X(cluster_lease_s, "cluster.lease", 15, 3, 300)                                            \
	X(seals_every_s, "seals.every", 10, 1, 3600)                                               \
	/* 1: a sandbox is required; 0: where none can be made, commands run without one */        \
	X(sandbox_required, "sandbox.required", 1, 0, 1)                                           \
	X(retention_days, "retention.days", 0, 0, 36500)                                           \
	X(disk_free_min_mb, "disk.free_min_mb", 256, 0, 1000000)                                   \
	/* MB that the journal reserves on the disk (journal/ballast.h); 0: none */                \
	X(disk_ballast_mb, "disk.ballast_mb", 64, 0, 4096)                                         \
	/* port of the page on the loopback address; 0: a free one, the same again as long as a    \
	 * browser or MCP client knows it */                                                       \
	X(web_port, "web.port", 0, 0, 65535)                                                       \
	/* uid of a user beside ours who may use the page; -1: none, -2: any */                    \
	X(web_uid, "web.uid", -1, -2, 4294967294)                                                  \
	/* cards of Claude Code's subagents: kept of a session, shown at once; milliseconds        \
	 * without a sign of life until one counts as stopped, that a stopped one stands out       \
	 * (doc/CLAUDE-CODE.md) */                                                                 \
	X(claude_file_cap, "claude.agent_file_cap", 20, 1, 10000)                                  \
	X(claude_log_max, "claude.agent_log_max", 8, 1, 1000)                                      \
	X(claude_stale_ms, "claude.agent_stale_ms", 300000, 1000, 86400000)                        \
	X(claude_cooldown_ms, "claude.agent_cooldown_ms", 180000, 0, 86400000)                     \
	/* notify.exec: seconds of a call, calls for one notice, seconds until the second */       \
	X(notify_timeout_s, "notify.timeout", 10, 1, 600)                                          \
	X(notify_attempts, "notify.attempts", 6, 1, 100)                                           \
	X(notify_retry_s, "notify.retry", 1, 0, 600)                                               \
	X(notify_desktop, "notify.desktop", 0, 0, 1)                                               \
	/* a push to otel.endpoint: seconds of a request, until the second attempt,                \
	 * until a trace is given up */                                                            \
	X(otel_timeout_s, "otel.timeout", 10, 1, 600)                                              \
	X(otel_retry_s, "otel.retry", 1, 0, 60)                                                    \
	X(otel_give_up_s, "otel.give_up", 3600, 1, 604800)                                         \
	/* 1: events of an ended run are pushed as records of a log, too; seconds between two      \
	 * pushes of metrics, 0: none */                                                           \
	X(otel_logs, "otel.logs", 0, 0, 1)                                                         \
	X(otel_metrics_s, "otel.metrics", 0, 0, 86400)                                             \
	/* ms between two messages to a chat of Telegram, and two changes of one message */        \
	X(telegram_pace_ms, "telegram.pace_ms", 1000, 0, 60000)                                    \
	X(telegram_edit_ms, "telegram.edit_ms", 3000, 100, 600000)                                 \
	/* ms between two messages to a room of Matrix, and two changes of one */                  \
	X(matrix_pace_ms, "matrix.pace_ms", 1000, 0, 60000)                                        \
	X(matrix_edit_ms, "matrix.edit_ms", 10000, 100, 600000)                                    \
	/* fetching for tools: 1: keep to robots.txt; fetches at once in all, and at one host; ms  \
	 * between two starts at one host */                                                       \
	X(web_robots, "web.robots", 1, 0, 1)                                                       \
	X(web_parallel, "web.parallel", 64, 1, 1000)                                               \
	X(web_per_host, "web.per_host", 4, 1, 64)                                                  \
	X(web_host_gap_ms, "web.host_gap_ms", 200, 0, 60000)                                       \
	/* seconds of a call to a model: to connect, to its first event (0: 120, and for a         \
	 * service on this machine all of it), between two events, all of it */                    \
	X(net_connect_s, "net.connect_timeout", 5, 1, 600)                                         \
	X(net_first_s, "net.first_event_timeout", 0, 0, 3600)                                      \
	X(net_idle_s, "net.idle_timeout", 60, 1, 3600)                                             \
	X(net_total_s, "net.turn_timeout", 1800, 1, 86400)                                         \
	/* seconds that a run waits without a slot for a quota that comes back; 0: it does not */  \
	X(park_max_s, "models.park_max", 43200, 0, 2592000)

/* The reaction to a used-up quota of a service that comes back: the run is parked until then, a
 * person is asked first, or it ends. */
enum settings_quota { QUOTA_PARK, QUOTA_ASK, QUOTA_FAIL, QUOTA_NWAYS };
extern const char *const settings_quota_words[QUOTA_NWAYS]; /* "park", … */

/* A row of budget.folders or budget.tags. */
#define SETTINGS_BUDGETS 64 /* most limits of all rows, the three above among them */
struct settings_budget {
	char of[256];                 /* a folder's path, or a tag */
	int64_t cents[CLOCK_PERIODS]; /* 0: no limit */
};

struct settings {
#define X(field, key, def, min, max) int64_t field;
	SETTINGS(X)
#undef X
	/* Setting `confirm`: a person is asked about a quote above this, or of unknown cost; or
	 * SETTINGS_CONFIRM_ALWAYS or _NEVER. */
	int64_t confirm_over_cents;
	enum settings_quota on_quota; /* `models.on_quota` */
	/* budget.folders, budget.tags; *borrowed* from the configuration that was read; NULL: none
	 */
	const struct settings_budget *budgets;
	size_t nbudgets;
};

#define SETTINGS_CONFIRM_ALWAYS (-1)
#define SETTINGS_CONFIRM_NEVER  INT64_MAX
#define SETTINGS_CONFIRM_MOST   1000000

struct settings_key {
	const char *name; /* "runs.max" */
	size_t at;        /* offset of the key's field in struct settings */
	int64_t def, min, max;
};
extern const struct settings_key settings_keys[]; /* the last has no name */

void settings_defaults(struct settings *s);
/* NULL: no such key. */
const struct settings_key *settings_find(const char *name);
void settings_put(struct settings *s, const struct settings_key *k, int64_t value);
int64_t settings_get(const struct settings *s, const struct settings_key *k);
void settings_variable(const struct settings_key *k, char out[64]); /* "AVA_RUNS_MAX" */
/* Override *s from the environment. 0 or AVA_EINVAL naming the variable, its value and the
 * range. */
int settings_environment(struct settings *s, struct ava_error *err);
/* Parse "always", "over_cents:N" or "never". AVA_EINVAL, with a sentence that begins with
 * `name`. */
int settings_confirm(const char *name, const char *text, int64_t *out, struct ava_error *err);
/* Parse "park", "ask" or "fail". AVA_EINVAL, with a sentence that begins with `name`. */
int settings_quota(const char *name, const char *text, enum settings_quota *out,
		   struct ava_error *err);
/* Set *s to the defaults, then override it from the environment. */
int settings_load(struct settings *s, struct ava_error *err);

/* The data root: $AVA_DATA_ROOT, else $XDG_DATA_HOME/ava, else ~/.local/share/ava; absolute.
 * AVA_EINVAL when no home is known or the path is not absolute. */
int settings_data_root(char *out, size_t size, struct ava_error *err);
/* Is that where the data root is when AVA_DATA_ROOT is not set? */
bool settings_root_is_usual(const char *root);
/* Is the folder open at `fd`, the data root `root`, ours, and closed to writing by others?
 * Otherwise its content may be anybody's. AVA_EDENIED with what to do. */
int settings_check_root(int fd, const char *root, struct ava_error *err);
/* The path of a configuration file: $XDG_CONFIG_HOME/ava/<file>, else ~/.config/ava/<file>;
 * absolute. AVA_ENOENT when no home is known, AVA_EINVAL when it is not absolute. */
int settings_config_path(const char *file, char *out, size_t size, struct ava_error *err);
/* Read a configuration file whole, as sys_read_file. Its content may be run, or say where keys are
 * sent: so AVA_EDENIED when others could have written or placed it. AVA_ENOENT: no file. */
int settings_read_file(const char *path, size_t max, char **data, size_t *len,
		       struct ava_error *err);

#endif
