#!/bin/bash
# Scores three parts from 0 to 1 and writes them to /logs/verifier/reward.json; all must be 1.
export LC_ALL=C
mkdir -p /logs/verifier
tmp=$(mktemp -d)

# score NAME: the share of lines "ARGUMENT WANTED" on standard input that roman.sh gets right, as NAME=…
score() {
  cut -d' ' -f1 > "$tmp/in"
  bash roman.sh $(cat "$tmp/in") > "$tmp/got" 2> /dev/null
  paste -d' ' "$tmp/in" "$tmp/got" > "$tmp/pairs"
  awk -v pairs="$tmp/pairs" '{ total++; if ((getline line < pairs) > 0 && line == $0) good++ } END { printf "%.3f\n", good / total }' "$1"
}

# Every number that uses each digit in each place, and some more.
awk 'BEGIN {
  split("I IV V IX X XL L XC C CD D CM M", r); split("1 4 5 9 10 40 50 90 100 400 500 900 1000", v)
  for (n = 1; n <= 3999; n += (n < 120 ? 1 : 37)) {
    left = n; out = ""
    for (i = 13; i >= 1; i--) while (left >= v[i]) { out = out r[i]; left -= v[i] }
    print n, out
  }
  print "3999 MMMCMXCIX"; print "007 VII"
}' > "$tmp/numbers"
awk '!/^007/ { print $2, $1 } NR % 5 == 0 { print tolower($2), $1 }' "$tmp/numbers" > "$tmp/numerals"

to_roman=$(score "$tmp/numbers" < "$tmp/numbers")
from_roman=$(score "$tmp/numerals" < "$tmp/numerals")

# Errors: each value alone, then in a row with right ones, then standard input.
good=0
total=0
try() {
  total=$((total + 1))
  if "$@"; then good=$((good + 1)); else echo "wrong: $*" >&2; fi
}
refuses() {
  local out
  out=$(bash roman.sh "$1" 2> "$tmp/err")
  [ $? -eq 1 ] && [ "$out" = "?" ] && [ -s "$tmp/err" ]
}
for value in 0 4000 -5 1.5 12a "" " " IIII VV IC IXI IM VX LL MMMM XXXX IIV XCX CMC "I V" ABC "*" 99999999999999999999; do
  try refuses "$value"
done
goes_on() { [ "$(bash roman.sh 4 x-ray IX 2> /dev/null; echo $?)" = "IV
?
9
1" ]; }
reads_input() { [ "$(printf 'XIV\n15\n' | bash roman.sh; echo $?)" = "14
XV
0" ]; }
try goes_on
try reads_input
errors=$(awk -v g="$good" -v t="$total" 'BEGIN { printf "%.3f", g / t }')

jq -n --argjson to "$to_roman" --argjson from "$from_roman" --argjson errors "$errors" '{to_roman: $to, from_roman: $from, errors: $errors}' > /logs/verifier/reward.json
cat /logs/verifier/reward.json
awk -v a="$to_roman" -v b="$from_roman" -v c="$errors" 'BEGIN { exit !(a == 1 && b == 1 && c == 1) }'
