#!/bin/bash
# Compares, sorts and picks versions.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
[ -f semver.sh ] || fail "semver.sh is missing"
tmp=$(mktemp -d)
# cmp A SIGN B, both ways
cmp_is() {
  local other=$((-$2))
  [ "$(bash semver.sh cmp "$1" "$3")" = "$2" ] || fail "cmp $1 $3: wanted $2, got $(bash semver.sh cmp "$1" "$3" 2>&1)"
  [ "$(bash semver.sh cmp "$3" "$1")" = "$other" ] || fail "cmp $3 $1: wanted $other"
}
cmp_is 1.0.0 -1 2.0.0
cmp_is 1.10.0 1 1.9.9
cmp_is 1.0.0 0 1.0.0
cmp_is 1.0.0-alpha -1 1.0.0
cmp_is 1.0.0+a 0 1.0.0+b
cmp_is 1.0.0-rc.1+x.y-z 0 1.0.0-rc.1
cmp_is 1.0.0-2 -1 1.0.0-11
cmp_is 1.0.0-11 -1 1.0.0-a
cmp_is 1.0.0-B -1 1.0.0-a
cmp_is 1.0.0-a -1 1.0.0-a.0
cmp_is 1.0.0-a-b 1 1.0.0-a
cmp_is 1.0.0--1 1 1.0.0-1
cmp_is 1.0.0-rc1 1 1.0.0-rc.2
cmp_is 18446744073709551617.0.0 1 18446744073709551616.0.0
cmp_is 1.0.99999999999999999999 1 1.0.9

printf '%s\n' 1.0.0 1.0.0-rc.1 1.0.0-beta.11 1.0.0-beta.2 1.0.0-beta 1.0.0-alpha.beta 1.0.0-alpha.1 1.0.0-alpha > "$tmp/down"
[ "$(bash semver.sh sort < "$tmp/down")" = "$(sed '1!G;h;$!d' "$tmp/down")" ] || fail "sort of the standard's example:
$(bash semver.sh sort < "$tmp/down")"
[ "$(bash semver.sh sort < releases.txt)" = "0.9.12
1.4.0
1.4.9
1.4.10-beta
1.4.10-rc.2
1.4.10-rc.11
1.4.10
1.40.0
2.0.0-alpha+001" ] || fail "sort of releases.txt:
$(bash semver.sh sort < releases.txt)"
[ "$(printf '1.0.0+b\n0.1.0\n1.0.0+a\n1.0.0\n' | bash semver.sh sort)" = "0.1.0
1.0.0+b
1.0.0+a
1.0.0" ] || fail "equal versions must keep their order"
[ -z "$(bash semver.sh sort < /dev/null)" ] || fail "sort of nothing"

# max PREFIX WANTED
max() { [ "$(bash semver.sh max "$1" < releases.txt)" = "$2" ] || fail "max $1: wanted '$2', got '$(bash semver.sh max "$1" < releases.txt)'"; }
max 1.4 1.4.10
max 1 1.40.0
max 2 ""
max 1.4.1 ""
bash semver.sh max 2 < releases.txt > /dev/null
[ $? -eq 1 ] || fail "max without a version must exit with 1"

for bad in 1.0 1.0.0.0 01.0.0 1.00.0 v1.0.0 1.0.0- 1.0.0-a..b 1.0.0+ 1.0.0-ä "" "1.0.0 " 1.0.x -1.0.0; do
  out=$(bash semver.sh cmp "$bad" 1.0.0 2> "$tmp/err")
  [ $? -eq 2 ] || fail "cmp '$bad': the exit code must be 2"
  [ -z "$out" ] || fail "cmp '$bad' printed $out"
  grep -qFx "semver.sh: invalid version: $bad" "$tmp/err" || fail "cmp '$bad': $(cat "$tmp/err")"
done
out=$(printf '1.0.0\n1.0\n2.0.0\n' | bash semver.sh sort 2> /dev/null)
[ $? -eq 2 ] && [ -z "$out" ] || fail "sort with an invalid version: printed <$out>"
echo "versions are in order"
