#!/bin/bash
# Means with gaps, odd numbers and broken lines.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
tmp=$(mktemp -d)
same() { [ "$2" = "$3" ] || fail "$1: wanted
$3
got
$2"; }

same "the sample" "$(bash averages.sh data/greenhouse.log)" "door 4.00 1 1
north 19.30 2 1
roof - 0 2
south 13.33 3 0"

cat > "$tmp/a" <<'END'
1 b 10
2 a 1e3
3 B -4
4 b +0.20
5 a .
6 B -
7 c 007
8 c 12abc
9 10 5   trailing fields
10 9 -0.5
11 c 1.2.3
12 z --1
END
same "odd numbers" "$(bash averages.sh "$tmp/a")" "10 5.00 1 0
9 -0.50 1 0
B -4.00 1 1
a - 0 2
b 5.10 2 0
c 7.00 1 2
z - 0 1"

: > "$tmp/empty"
out=$(bash averages.sh "$tmp/empty") || fail "an empty file: exit code $?"
same "an empty file" "$out" ""

printf '# head\n1 a 5\n\n2 a\n' > "$tmp/short"
out=$(bash averages.sh "$tmp/short" 2> "$tmp/err")
[ $? -eq 1 ] || fail "a short line must exit with 1"
same "stdout after a short line" "$out" ""
same "the message" "$(cat "$tmp/err")" "averages.sh: line 4: expected TIME SENSOR VALUE"

printf '1 a 5\r\n' | tr -d '\r' | bash averages.sh /dev/stdin > "$tmp/out" || fail "standard input"
same "standard input" "$(cat "$tmp/out")" "a 5.00 1 0"
echo "all means are right"
