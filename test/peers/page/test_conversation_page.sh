#!/bin/sh
# The golden conversation as the page shows it (conversation.mjs); the environment of test_page.sh. With an argument
# test/golden/conversation/page.txt is written anew.
SRCDIR=${SRCDIR:-$(cd "${0%/*}/../../.." && pwd)}
. "${0%/*}/../../cli/lib.sh"
. "$SRCDIR/test/cli/conversation.sh"

start_daemon
node "$SRCDIR/test/peers/page/conversation.mjs" "$@"
