#!/usr/bin/env bash
# Builds isl, the integer set library, as one static library that needs nothing else.
#
#   scripts/build_isl.sh FOLDER
#
# leaves FOLDER/libisl.a. Its numbers are IMath's, not GMP's: small ones need no memory of their own, which makes proofs two to
# three times as fast, and what is linked with it keeps a permissive licence (isl and IMath are MIT).
#
# The sources are those in the crate isl-rs, which cargo fetches and checks; none of its Rust is used. isl's own configure asks
# only what every compiler here can do, so the files are compiled without it. Takes half a minute on two cores, and nothing
# where the library is there already. Files that proofs hardly run are not optimised: that saves a third of the time.
set -euo pipefail

readonly CRATE=isl-rs
readonly VERSION=0.3.1
readonly FLAGS="-fPIC -w -I. -Iinclude -Iimath_wrap"
# What prints, parses, schedules and generates code, and functions with values: isl_aff.c alone takes 11 s with -O2.
readonly COLD='(^print|_(aff|ast.*|flow|fold|input|list|obj|options|output|polynomial|schedule.*|stream|transitive_closure|union.*|val|vertices))[.]c$'
folder=$(mkdir -p "$1" && cd "$1" && pwd)
readonly folder
readonly done_with="$CRATE $VERSION $FLAGS $COLD"
[[ $(cat "$folder/version" 2>/dev/null) == "$done_with" && -e $folder/libisl.a ]] && exit 0

work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"
: >"$work/src/lib.rs"
printf '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n[workspace]\n' \
  "$CRATE" "$VERSION" >"$work/Cargo.toml"
cd "$work"
cargo vendor --quiet --versioned-dirs >/dev/null
cd "vendor/$CRATE-$VERSION/isl"

# What configure would write.
cat >isl_config.h <<'END'
#define HAVE___ATTRIBUTE__ 1
#define GCC_WARN_UNUSED_RESULT __attribute__((__warn_unused_result__))
#define HAVE_DECL_FFS 1
#define HAVE_DECL_STRCASECMP 1
#define HAVE_DECL_STRNCASECMP 1
#define HAVE_DECL_SNPRINTF 1
#define USE_IMATH_FOR_MP 1
#define USE_SMALL_INT_OPT 1
#include "isl_config_post.h"
END
echo '#include <stdint.h>' >include/isl/stdint.h
echo "#define GIT_HEAD_ID \"$VERSION\"" >gitversion.h

numbers="isl_imath.c isl_int_sioimath.c isl_val_sioimath.c imath_wrap/gmp_compat.c imath_wrap/imath.c imath_wrap/imrat.c"
sources="$(sed -n '/^libisl_la_SOURCES/,/^$/s/^\t\([a-z_]*\.c\).*/\1/p' Makefile.am) $numbers"
# The longest first, so that no core waits for one in the end.
# shellcheck disable=SC2086
ls -S $sources | awk -v cold="$COLD" '{ print ($0 ~ cold ? "-O0" : "-O2"), $0 }' |
  xargs -P "$(nproc)" -L 1 sh -c 'cc '"$FLAGS"' "$1" -c "$2" -o "$(basename "$2" .c).o"' sh || {
  echo "build_isl: isl could not be compiled; the compiler's message is above." >&2
  exit 1
}
# Another process may be linking with the one that is there.
ar rcs "$folder/libisl.a.$$" ./*.o
mv "$folder/libisl.a.$$" "$folder/libisl.a"
echo "$done_with" >"$folder/version"
