/* What `ava doctor` asks of the hooks that Claude Code has of ava. */
#ifndef CLI_CMD_HOOKS_H
#define CLI_CMD_HOOKS_H

struct ava_error;

/* Why the hooks in Claude Code's settings are out of date, static text; NULL: they are not, or
 * there are none of ours. */
const char *hooks_stale(void);
/* Install those anew, with --activity where that was so. A file that is no JSON stays: AVA_EINVAL.
 */
int hooks_renew(struct ava_error *err);

#endif
