#!/bin/bash
# Cleans the sample and a list with more corners.
fail() { echo "FAIL: $*" >&2; exit 1; }
here=${0%/*}
tmp=$(mktemp -d)
[ -f normalise.py ] || fail "normalise.py is missing"
# clean IN WANTED-FILE WANTED-LINE
clean() {
  local out
  out=$(python3 normalise.py "$1" "$tmp/out.csv") || fail "$1: exit code $?"
  [ "$out" = "$3" ] || fail "$1: printed <$out>, wanted <$3>"
  cmp -s "$tmp/out.csv" "$2" || fail "$1: wrote
$(cat "$tmp/out.csv")
instead of
$(cat "$2")"
}
clean contacts.csv "$here/contacts.want.csv" "rows 9, written 6, bad phones 3"
clean "$here/more.csv" "$here/more.want.csv" "rows 10, written 7, bad phones 5"
printf 'name,email,phone,country\n' > "$tmp/none.csv"
clean "$tmp/none.csv" "$tmp/none.csv" "rows 0, written 0, bad phones 0"
echo "clean"
