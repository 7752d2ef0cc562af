#!/bin/bash
# Compares with the report as it was, and calls the new functions one by one.
export LC_ALL=C
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }
tmp=$(mktemp -d)

awk 'BEGIN { for (i = 1; i <= 23; i++) print i ",max,open," i; for (i = 1; i <= 20; i++) print 100 + i ",lea,open,1"; print "300,kim,closed,7" }' > "$tmp/many.csv"
printf '1,a,open,1\n2,b,open,1\n' > "$tmp/no closed.csv"
: > "$tmp/empty.csv"

for file in week-12.csv "$tmp/many.csv" "$tmp/no closed.csv" "$tmp/empty.csv"; do
  bash "$here/original.sh" "$file" > "$tmp/want"
  bash report.sh "$file" > "$tmp/got" || fail "report.sh $file: exit code $?"
  cmp -s "$tmp/want" "$tmp/got" || fail "report.sh $file prints
$(cat "$tmp/got")"
done
bash "$here/original.sh" "$tmp/many.csv" > "$tmp/want"
(cd / && bash "$OLDPWD/report.sh" "$tmp/many.csv") > "$tmp/got" || fail "report.sh from another directory"
cmp -s "$tmp/want" "$tmp/got" || fail "report.sh from another directory prints something else"

for lib in tickets format; do
  [ -f "lib/$lib.sh" ] || fail "lib/$lib.sh is missing"
  out=$(bash -c 'before=$-:$(shopt -p); . "lib/$1.sh"; [ "$before" = "$-:$(shopt -p)" ] || echo "shell options changed"' x "$lib" 2>&1)
  [ -z "$out" ] || fail "sourcing lib/$lib.sh: $out"
  if bash -c 'compgen -v | grep -vxE "_|PIPESTATUS" | sort > "$2/v1"; . "lib/$1.sh"; compgen -v | grep -vxE "_|PIPESTATUS" | sort > "$2/v2"; ! cmp -s "$2/v1" "$2/v2"' x "$lib" "$tmp"; then
    fail "lib/$lib.sh sets variables: $(diff "$tmp/v1" "$tmp/v2")"
  fi
done

# run LIB FUNCTION ARGUMENTS...
run() { bash -c '. "lib/$1.sh"; shift; "$@"' x "$@" 2>&1; }
same() { [ "$2" = "$3" ] || fail "$1: wanted <$3>, got <$2>"; }
same open_count "$(run tickets open_count week-12.csv)" 5
same "open_count of nothing" "$(run tickets open_count "$tmp/empty.csv")" 0
same mean_days "$(run tickets mean_days week-12.csv)" 5.0
same "mean_days of nothing" "$(run tickets mean_days "$tmp/no closed.csv")" -
same by_owner "$(run tickets by_owner week-12.csv)" "ines 2
omar 2
pia 1"
same heading "$(run format heading "Two words")" "Two words
========="
same "bar 0" "$(run format bar 0)" ""
same "bar 3" "$(run format bar 3)" "###"
same "bar 20" "$(run format bar 20)" "####################"
same "bar 21" "$(run format bar 21)" "####################+"

! grep -qw awk report.sh || fail "report.sh still calls awk"
grep -q 'tickets\.sh' report.sh && grep -q 'format\.sh' report.sh || fail "report.sh does not source both files"
echo "the parts do what the whole did"
