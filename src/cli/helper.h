/* Questions that only avad can answer (it links what reads config.yaml and
 * speaks to services) without a daemon: it runs once and prints. */
#ifndef CLI_HELPER_H
#define CLI_HELPER_H

struct ava_error;
struct buf;

/* Run avad with these words (NULL ends them) and wait. What it printed goes
 * into `out`; its own sentence into `err` when it fails (AVA_EIO). AVA_ENOENT:
 * there is no avad; AVA_ETOOBIG: more than `out` takes. */
int helper_run(const char *const *words, struct buf *out, struct ava_error *err);

#endif
