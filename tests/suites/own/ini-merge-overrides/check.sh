#!/bin/bash
# Merges the samples and files with odd spacing.
export LC_ALL=C
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }
[ -f merge.sh ] || fail "merge.sh is missing"
same() { [ "$2" = "$3" ] || fail "$1: wanted
$3
got
$2"; }
same "the samples" "$(bash merge.sh app.ini local.ini)" "$(cat "$here/samples.want")"
same "merged.ini" "$(cat merged.ini 2>&1)" "$(cat "$here/samples.want")"
same "odd files" "$(bash merge.sh "$here/odd.ini" "$here/odd.over.ini")" "$(cat "$here/odd.want")"
printf '[a]\nx=1\n' > /tmp/a.ini
: > /tmp/empty.ini
same "an empty override" "$(bash merge.sh app.ini /tmp/empty.ini)" "$(cat app.ini)"
same "an empty base" "$(bash merge.sh /tmp/empty.ini /tmp/a.ini | sed '/^$/d')" "[a]
x = 1"
echo "merged"
