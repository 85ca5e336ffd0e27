# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What all the scripts share: where things are, how an error is told, how a kernel
# tree is built. Read by `source`; touches nothing by itself.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build

# Sorting and messages are the same everywhere, and a make that called us does not
# hand its options down.
export LC_ALL=C
unset MAKEFLAGS MFLAGS MAKELEVEL

# On a miss ccache then runs the compiler alone, without the preprocessor first.
export CCACHE_DEPEND=1

# die WORDS...: one line that says what happened, what it means, what to do.
die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# fail_with_log LOG WORDS...: the same, after the end of a log.
fail_with_log()
{
	local log=$1

	shift
	tail -n 25 "$log" >&2
	die "$*; above is the end of ${log#"$top"/}"
}

# say WORDS...: a line of progress.
say()
{
	printf '  %s\n' "$*" >&2
}

# need_space DIRECTORY MIB: stop unless the file system has that much free.
need_space()
{
	local free

	free=$(df --output=avail -B1M "$1" | tail -n 1)
	((free >= $2)) ||
		die "only $((free)) MiB are free in ${1#"$top"/} but $2 are needed; make room there and run this again"
}

# up_to_date FILE INPUT...: whether FILE is there and no INPUT, nor a file below one
# that is a directory, is newer.
up_to_date()
{
	local file=$1

	shift
	[[ -e $file && -z $(find "$@" -newer "$file" -print -quit) ]]
}

# base_version: the base's VERSION.PATCHLEVEL.SUBLEVEL.
base_version()
{
	awk '$2 == "=" && /^(VERSION|PATCHLEVEL|SUBLEVEL) / {
		printf "%s%s", sep, $3
		sep = "."
	}' "$build/base/Makefile"
}

# use_kernel NAME: sets the array kbuild to the make command that builds the kernel
# NAME from build/tree, with clang if its name ends so. The fixed date lets ccache,
# which is used where it is there, find what it has seen. No pahole: its version is a part
# of the configuration, and the headers that the tests need bring one, which would have
# everything built again.
use_kernel()
{
	local name=$1 arch=x86_64 cc=gcc ccache=

	[[ $name != uml* ]] || arch=um
	[[ $name != *-clang ]] || cc=clang
	! command -v ccache >/dev/null || ccache='ccache '
	# shellcheck disable=SC2034 # read by the scripts that source this file
	kbuild=(nice make -C "$build/tree" O="$build/kernel/$name" ARCH="$arch"
		CC="$ccache$cc" HOSTCC="${ccache}gcc"
		KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970'
		KBUILD_BUILD_USER=test KBUILD_BUILD_HOST=test PAHOLE=none)
}
