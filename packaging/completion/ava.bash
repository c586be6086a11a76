# Completion of ava in bash: source <(ava completion bash)
_ava()
{
	local line=${COMP_LINE:0:COMP_POINT} words=() word found begun
	# bash splits a word at ":" and "=", ava does not: what has no blank between is one word.
	for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
		if [[ ${#words[@]} -eq 0 || -z $line || $line == [[:space:]]* ]]; then
			words+=("$word")
		else
			words[-1]+=$word
		fi
		line=${line#"${line%%[![:space:]]*}"}
		line=${line#"$word"}
	done
	begun=${words[-1]}
	[[ $word == [:=]* ]] || begun=${begun%"$word"}
	COMPREPLY=()
	while IFS=$'\t' read -r found _; do
		printf -v found %q "${found#"$begun"}"
		COMPREPLY+=("$found")
	done < <(ava completion words -- "${words[@]:1}" 2>/dev/null)
}
complete -o bashdefault -o default -F _ava ava
