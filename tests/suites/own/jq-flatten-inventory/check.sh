#!/bin/bash
# Flattens the sample and a deeper tree; keys may come in any order.
export LC_ALL=C
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }
[ -f flatten.jq ] || fail "flatten.jq is missing"
# flat FILE WANTED
flat() {
  local out
  out=$(jq -c -f flatten.jq "$1") || fail "$1: exit code $?"
  out=$(printf '%s\n' "$out" | jq -cS '.value_cents |= (if . == null then null else . + 0 end)')
  [ "$out" = "$2" ] || fail "$1: wanted
$2
got
$out"
}
flat inventory.json '{"quantity":3,"shelf":"Z","site":"harbour","sku":"A-01","tags":["heavy"],"value_cents":null}
{"quantity":1,"shelf":"Z","site":"harbour","sku":"L-10","tags":[],"value_cents":null}
{"quantity":4,"shelf":"A/2","site":"north","sku":"L-10","tags":["fragile","new"],"value_cents":5000}
{"quantity":2,"shelf":"A","site":"north","sku":"L-11","tags":["fragile"],"value_cents":58}'
flat "$here/deep.json" "$(cat "$here/deep.want.jsonl")"
echo '{"sites":[]}' > /tmp/none.json
[ -z "$(jq -c -f flatten.jq /tmp/none.json)" ] || fail "no sites must give no lines"
echo "flat"
