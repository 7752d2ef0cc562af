#!/bin/bash
# Rotates folders with awkward names and counts what is left.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
tmp=$(mktemp -d)

fill() { rm -rf "$tmp/store"; mkdir "$tmp/store"; for name in "$@"; do echo "$name" > "$tmp/store/$name"; done; }
left() { (cd "$tmp/store" && ls | sort); }

fill db-8.tar db-9.tar db-10.tar db-11.tar db-logs-1.tar db-logs-2.tar db-logs-30.tar "user files-9.tar" "user files-100.tar" "user files-20.tar" README db-notes.tar db-7.tar.part
out=$(bash rotate.sh "$tmp/store" 2) || fail "exit code $?"
[ "$(left)" = "README
db-10.tar
db-11.tar
db-7.tar.part
db-logs-2.tar
db-logs-30.tar
db-notes.tar
user files-100.tar
user files-20.tar" ] || fail "left with KEEP 2:
$(left)"
[ "$out" = "removed db-8.tar
removed db-9.tar
removed db-logs-1.tar
removed user files-9.tar" ] || fail "printed:
$out"

out=$(bash rotate.sh "$tmp/store" 2) || fail "a second run: exit code $?"
[ -z "$out" ] || fail "a second run removed something: $out"

fill a-1.tar a-2.tar b-5.tar keep.txt
bash rotate.sh "$tmp/store" 0 > /dev/null || fail "KEEP 0: exit code $?"
[ "$(left)" = keep.txt ] || fail "KEEP 0 left: $(left)"

fill a-1.tar a-2.tar
for bad in x -1 "" 1x; do
  bash rotate.sh "$tmp/store" "$bad" > /dev/null 2>&1
  [ $? -eq 2 ] || fail "KEEP '$bad' must exit with 2"
  [ "$(left)" = "a-1.tar
a-2.tar" ] || fail "KEEP '$bad' deleted something"
done

fill
out=$(bash rotate.sh "$tmp/store" 3 2>&1) || fail "an empty folder: exit code $?"
[ -z "$out" ] || fail "an empty folder: $out"
echo "rotation is right"
