# models.sh - model services by mock-models (doc/MOCK.md), for a suite that has sourced lib.sh.
: "${MOCK:=${AVAD%/src/gateway/avad}/test/mock/mock-models}"
[ -x "$MOCK" ] || MOCK=$(dirname -- "$AVA")/../../test/mock/mock-models
[ -x "$MOCK" ] || skip "mock-models is not built: $MOCK"
command -v curl >/dev/null || skip 'no curl'

# models OPTION...: start it; its address in $MOCK_URL, and every service is found there.
models()
{
	"$MOCK" --quiet "$@" >"$T/mock.out" 2>"$T/mock.err" &
	keep $!
	wait_for 10 grep -q ready "$T/mock.out"
	MOCK_URL=$(models_address plain)
	unset AVA_MODEL
	export MOCK_URL AVA_LOCAL_BASE_URL="$MOCK_URL/local/v1"
	export ANTHROPIC_API_KEY=test-key-0123456789 ANTHROPIC_BASE_URL="$MOCK_URL"
	export OPENAI_API_KEY=test-key-0123456789 OPENAI_BASE_URL="$MOCK_URL/v1"
	export OPENROUTER_API_KEY=test-key-0123456789 OPENROUTER_BASE_URL="$MOCK_URL/api/v1"
}

models_address() { sed -n "s/^$1 //p" "$T/mock.out"; }
mock() { curl -s --noproxy '*' "$MOCK_URL$1"; }
stat() { mock /stats | jq "$1"; }
rules() { curl -s --noproxy '*' "$MOCK_URL/plan" -d "{\"rules\":[$1]}" >/dev/null; }

# none_refused NAME: no request was one that a service refuses.
none_refused()
{
	equal "$1" 0 "$(stat .refused)" ||
		note "$(mock /requests | jq -c '.[] | select(.error != "" and .fault == "")' | head -n 5)"
}
