#!/bin/sh
# install.sh [TARBALL]     put ava into ~/.local, without root: a folder of its version, and links to it
# install.sh --uninstall   undo that, and take it out of Claude Code's and others' settings; data stay
#
# Without TARBALL: the tarball beside this script, or the unpacked one that it stands in. The folder is
# lib/ava-VERSION; links lead there from bin, share/man, share/systemd/user and the folders of shells'
# completions, and are listed in the folder's file `links`. Each thing done is said. AVA_PREFIX: another
# place than ~/.local. SHA256SUMS is asked where it stands beside the tarball.
set -eu

say() { printf '%s\n' "$*"; }
die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

# The folders that this script makes stand in the file `folders` of the version, children first.
make_folder()
{
	[ ! -d "$prefix/$1" ] || return 0
	make_folder "$(dirname -- "$1")"
	mkdir -- "$prefix/$1"
	{ printf '%s\n' "$1" && cat -- "$folders"; } >"$folders.new"
	mv -- "$folders.new" "$folders"
}

# Remove the links of a folder that still lead into it, and the folder.
remove()
{
	while IFS= read -r link; do
		case $(readlink -m -- "$prefix/$link") in
		"$1"/*)
			rm -f -- "$prefix/$link"
			say "removed $prefix/$link"
			;;
		esac
	done <"$1/links"
	rm -rf -- "$1"
	say "removed $1"
}

# is_avad PID: a daemon of this user's; for root, of anybody's. It is known by its name, since avad lets nobody see the path of its program.
is_avad()
{
	awk -v me="$(id -u)" '/^Name:/ { name = $2 } /^Uid:/ { mine = me == 0 || $2 == me } END { exit !(name == "avad" && mine) }' \
		"/proc/$1/status" 2>/dev/null
}

# Does a daemon of this data root run? The first line of the root's lock is its process.
daemon_runs()
{
	daemon=
	! read -r daemon 2>/dev/null <"$root/ava.lock" || [ -z "$daemon" ] || ! is_avad "$daemon" || return 0
	return 1
}

# Does one of any data root?
any_daemon_runs()
{
	for daemon in /proc/[0-9]*; do
		daemon=${daemon#/proc/}
		! is_avad "$daemon" || return 0
	done
	return 1
}

# names FILE BEGINNING END: the file has, between these, the program that is to be removed.
names()
{
	grep -qsF -e "$2$prefix/bin/ava$3" -e "$2$folder/bin/ava$3" -- "$1"
}

# take_out FILE COMMAND...: the program's own command takes it out of another program's settings.
take_out()
{
	file=$1
	shift
	if "$folder/bin/ava" "$@" >/dev/null 2>&1; then
		say "took ava out of $file (ava $*)"
	else
		say "$file still starts $prefix/bin/ava, which will be gone: take its lines out"
	fi
}

# Settings of other programs that start this one, of `ava hooks install` and `ava mcp install`.
take_out_of_settings()
{
	config=${XDG_CONFIG_HOME:-$HOME/.config}
	file=${CLAUDE_CONFIG_DIR:-$HOME/.claude}/settings.json
	if names "$file" '' ' hook' || names "$file" "'" "' hook"; then
		take_out "$file" hooks uninstall
	fi
	for client in claude="${CLAUDE_CONFIG_DIR:-$HOME}/.claude.json" codex="${CODEX_HOME:-$HOME/.codex}/config.toml" \
		cursor="$HOME/.cursor/mcp.json" zed="$config/zed/settings.json"; do
		! names "${client#*=}" '"' '"' || take_out "${client#*=}" mcp uninstall "${client%%=*}"
	done
}

# A service that systemd would go on to start: its unit goes with the folder.
disable()
{
	for unit in default.target.wants/ava.service sockets.target.wants/ava.socket; do
		at=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/$unit
		case $(readlink -m -- "$at") in
		"$prefix"/*)
			systemctl --user --quiet disable --now "${unit#*/}" >/dev/null 2>&1 || rm -f -- "$at"
			say "disabled ${unit#*/}"
			;;
		esac
	done
}

uninstall()
{
	found=
	! daemon_runs || say "a daemon of ava runs, as process $daemon, and goes on: kill $daemon ends it"
	for folder in "$prefix"/lib/ava-*/; do
		folder=${folder%/}
		[ -f "$folder/links" ] || continue
		found=yes
		made="$(cat -- "$folder/folders")
${made:-}"
		take_out_of_settings
		disable
		remove "$folder"
	done
	[ -n "$found" ] || die "there is no ava in $prefix that this script has put there"
	printf '%s' "$made" | while IFS= read -r folder; do # those that are empty now
		[ -z "$folder" ] || rmdir -- "$prefix/$folder" 2>/dev/null || :
	done
	for kept in "$root" "${XDG_CONFIG_HOME:-$HOME/.config}/ava" "${XDG_STATE_HOME:-$HOME/.local/state}/ava" \
		"${CLAUDE_CONFIG_DIR:-$HOME/.claude}/agent-activity"; do
		[ ! -d "$kept" ] || say "stays, since it is yours: $kept ($(du -sh -- "$kept" 2>/dev/null | cut -f 1))"
	done
}

# The tarball has the bytes that SHA256SUMS says, where that is beside it.
verify()
{
	sums=$(dirname -- "$1")/SHA256SUMS
	if [ ! -f "$sums" ]; then
		say "not checked: there is no SHA256SUMS beside $1"
		return 0
	fi
	said=$(awk -v name="$(basename -- "$1")" '$2 == name { print $1 }' "$sums")
	[ -n "$said" ] || die "$sums does not name $(basename -- "$1"): take both from the same release"
	[ "$(sha256sum -- "$1" | cut -d ' ' -f 1)" = "$said" ] ||
		die "$1 is not what $sums says: fetch both again, and nothing of this file was used"
	say "checked $1 by $sums"
}

# wanted TREE: its files that get a link, each with the folder of the prefix that it stands in then.
wanted()
{
	for file in "$1"/bin/ava "$1"/bin/avad "$1"/share/man/man*/* "$1"/share/bash-completion/completions/* \
		"$1"/share/zsh/*/* "$1"/share/fish/vendor_completions.d/* "$1"/lib/systemd/user/*; do
		[ -f "$file" ] || continue
		file=${file#"$1"/}
		case $file in
		share/zsh/*) printf '%s share/zsh/site-functions\n' "$file" ;;
		lib/systemd/*) printf '%s share/systemd/user\n' "$file" ;;
		*) printf '%s %s\n' "$file" "${file%/*}" ;;
		esac
	done
}

# What stands at this place, if anything, is a link of this script's.
is_free()
{
	case $(readlink -m -- "$1") in "$prefix"/lib/ava-*) return 0 ;; esac
	[ ! -e "$1" ] && [ ! -L "$1" ] || die "$1 is there and is not of this script: move it away first"
}

# escaped TEXT: as it stands in the right half of sed's s###.
escaped() { printf '%s' "$1" | sed 's/[\\&#]/\\&/g'; }

install()
{
	if [ -n "$tarball" ]; then
		[ -f "$tarball" ] || die "there is no file $tarball"
		verify "$tarball"
		tar -xzf "$tarball" -C "$new" || die "$tarball cannot be unpacked: fetch it again"
	else
		cp -R -- "$self" "$new/"
	fi
	set -- "$new"/ava-*-linux-*/
	[ $# -eq 1 ] && [ -x "$1/bin/ava" ] || die "this is no tarball of ava: ${tarball:-$self}"
	unpacked=${1%/}
	said=$("$unpacked/bin/ava" version 2>&1) ||
		die "ava does not start here (it needs Linux with glibc 2.36 or newer, on $(basename -- "$unpacked" | sed 's/.*-linux-//')): $said"
	home=$prefix/lib/$(basename -- "$unpacked" | sed 's/-linux-.*//')
	wanted "$unpacked" >"$new/wanted"
	while read -r file folder; do is_free "$prefix/$folder/${file##*/}"; done <"$new/wanted"
	[ ! -d "$home" ] || [ -f "$home/links" ] || die "$home is there and is not of this script: move it away first"
	: >"$unpacked/links"
	for old in "$prefix"/lib/ava-*/folders; do # made by an older version: this one's to remove now
		[ ! -f "$old" ] || [ "$old" = "$folders" ] || cat -- "$old" >>"$folders"
	done
	mv -- "$folders" "$unpacked/folders"
	folders=$home/folders
	[ ! -d "$home" ] || mv -- "$home" "$new/before" # the same version again
	mv -- "$unpacked" "$home"
	say "unpacked into $home"
	[ -n "$usual" ] || sed -i "s#%h/.local#$(escaped "$prefix")#" "$home"/lib/systemd/user/*.service
	[ ! -f "$home/share/doc/ava/config.yaml" ] || sed -i "s#/usr/share/#$(escaped "$home")/share/#" "$home/share/doc/ava/config.yaml"
	while read -r file folder; do
		make_folder "$folder"
		at=$prefix/$folder/${file##*/}
		ln -sf -- "$home/$file" "$at"
		printf '%s\n' "$folder/${file##*/}" >>"$home/links"
		say "linked $at"
	done <"$new/wanted"
	old_versions
	say "installed: $said"
	case :$PATH: in *":$prefix/bin:"*) ;; *) say "$prefix/bin is not in PATH. To type \`ava\` alone: export PATH=\"$prefix/bin:\$PATH\"" ;; esac
	[ -x /usr/bin/bwrap ] || [ -x /usr/local/bin/bwrap ] ||
		say "for commands of subagents install the package bubblewrap, which keeps them in a sandbox"
	say "to undo this: sh $home/install.sh --uninstall"
}

# Programs of an older version are kept while a daemon may need them.
old_versions()
{
	if daemon_runs; then
		say "a daemon of ava runs as it was: \`ava restart\` begins it anew with this version"
		return 0
	fi
	others=
	! any_daemon_runs || others=$daemon # of another data root
	for folder in "$prefix"/lib/ava-*/; do
		folder=${folder%/}
		[ "$folder" != "$home" ] && [ -f "$folder/links" ] || continue
		if [ -n "$others" ]; then
			say "left $folder, since a daemon of another data root may need it (process $others): the next install removes it"
		else
			remove "$folder"
		fi
	done
}

[ "$(uname -s)" = Linux ] || die "this is for Linux (in Windows: for WSL2)"
[ -n "${HOME:-}" ] || die "HOME is not set"
prefix=${AVA_PREFIX:-$HOME/.local}
root=${AVA_DATA_ROOT:-${XDG_DATA_HOME:-$HOME/.local/share}/ava}
case $prefix in /*) ;; *) die "AVA_PREFIX is $prefix, and has to begin with /" ;; esac
usual=
[ "$prefix" != "$HOME/.local" ] || usual=yes
# As links lead to it, also where HOME is a link itself.
[ ! -d "$prefix" ] || prefix=$(CDPATH='' cd -- "$prefix" && pwd -P)
case ${1:-} in
--uninstall)
	uninstall
	exit 0
	;;
-h | --help)
	sed -n '2,9s/^# \{0,1\}//p' "$0"
	exit 0
	;;
-*) die "there is no option $1; --uninstall and --help are" ;;
esac
self=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
tarball=${1:-}
if [ -z "$tarball" ] && [ ! -x "$self/bin/ava" ]; then
	set -- "$self"/ava-*-linux-"$(uname -m)".tar.gz
	[ $# -eq 1 ] && [ -f "$1" ] || die "name the tarball: install.sh ava-VERSION-linux-$(uname -m).tar.gz"
	tarball=$1
fi
case ${usual:-$prefix} in
*[[:space:]%\"\'\\]*) die "AVA_PREFIX is $prefix, with a character that a unit of systemd cannot have in a path" ;;
esac
mkdir -p -- "$prefix"
prefix=$(CDPATH='' cd -- "$prefix" && pwd -P)
made_lib=
[ -d "$prefix/lib" ] || made_lib=lib
mkdir -p -- "$prefix/lib"
new=$(mktemp -d "$prefix/lib/ava-new.XXXXXX")
home=
# The same version, put aside, goes back where this one did not take its place.
trap '[ ! -d "$new/before" ] || [ -d "$home" ] || mv -- "$new/before" "$home"; rm -rf -- "$new"; [ -z "$made_lib" ] || rmdir -- "$prefix/lib" 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM HUP PIPE
folders=$new/folders
printf '%s\n' $made_lib >"$folders"
install
