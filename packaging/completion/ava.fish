# Completion of ava in fish: ava completion fish | source
function __ava_words
	set -l words (commandline -opc) (commandline -ct)
	set -l found (ava completion words -- $words[2..] 2>/dev/null)
	if set -q found[1]
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c ava -f -k -a '(__ava_words)'
