#!/usr/bin/env bash
# Builds isl, the integer set library, as one static library that needs nothing else: its numbers are IMath's, not GMP's, so
# that what is linked with it keeps a permissive licence (isl and IMath are MIT).
#
#   scripts/build_isl.sh FOLDER
#
# leaves FOLDER/libisl.a. The sources are those in the crate isl-rs, which cargo fetches and checks; none of its Rust is used.
# Takes two minutes, and nothing where the library is there already.
set -euo pipefail

readonly CRATE=isl-rs
readonly VERSION=0.3.1
folder=$(mkdir -p "$1" && cd "$1" && pwd)
readonly folder
[[ $(cat "$folder/version" 2>/dev/null) == "$CRATE $VERSION" && -e $folder/libisl.a ]] && exit 0

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
# A crate's files have no permission to be executed, and autoconf's have to be made.
chmod +x ./*.sh
# Made from git's history, which a crate has not.
echo "#define GIT_HEAD_ID \"$VERSION\"" >gitversion.h
./autogen.sh >"$work/log" 2>&1 &&
  ./configure --with-int=imath-32 --disable-shared --with-pic --silent CFLAGS=-O2 >>"$work/log" 2>&1 &&
  make --silent -j "$(nproc)" libisl.la >>"$work/log" 2>&1 || {
  tail -n 20 "$work/log" >&2
  echo "build_isl: isl could not be built; the end of its log is above." >&2
  exit 1
}
cp .libs/libisl.a "$folder/libisl.a"
echo "$CRATE $VERSION" >"$folder/version"
