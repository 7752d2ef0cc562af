#!/bin/bash
# Compares with the script as it was, then changes the rules.
export LC_ALL=C
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }

while IFS= read -r subject; do
  want=$(bash "$here/original.sh" "$subject")
  got=$(bash route.sh "$subject" < /dev/null)
  [ "$got" = "$want" ] || fail "'$subject': wanted '$want', got '$got'"
done < <(cat subjects.txt "$here/subjects.txt")
(cd / && [ "$(bash "$OLDPWD/route.sh" "invoice 1")" = "billing 2" ]) || fail "from another directory"

jq -e 'type == "array" and length >= 6 and all(.[]; (.pattern | type == "string") and (.team | type == "string"))' routes.json > /dev/null || fail "routes.json is not as described"
cp routes.json saved.json
jq '[{pattern: "*parcel*", team: "depot"}, {pattern: "x y*z", team: "second desk", priority: 9}, {pattern: "[ab]?", team: "short", priority: 4}, {pattern: "100% \"sure\"*", team: "odd", priority: 7}] + .' saved.json > routes.json
# rule SUBJECT WANTED
rule() { [ "$(bash route.sh "$1")" = "$2" ] || fail "a new rule: '$1' gives '$(bash route.sh "$1")', wanted '$2'"; }
rule "Where is my PARCEL?" "depot 3"
rule "X Y and z" "second desk 9"
rule "b7" "short 4"
rule "c7" "inbox 3"
rule '100% "Sure" thing' "odd 7"
rule "Invoice 1" "billing 2"
echo '[{"pattern": "*", "team": "all", "priority": 1}]' > routes.json
rule "Invoice 1" "all 1"
echo '[]' > routes.json
rule "Invoice 1" "inbox 3"

for broken in "[{" "gone"; do
  if [ "$broken" = gone ]; then rm routes.json; else echo "$broken" > routes.json; fi
  out=$(bash route.sh "Invoice 1" 2> err.txt)
  [ $? -eq 2 ] || fail "routes.json broken ($broken): the exit code must be 2"
  [ -z "$out" ] || fail "routes.json broken ($broken): printed $out"
  [ -s err.txt ] || fail "routes.json broken ($broken): no message"
done
echo "rules are data"
