#!/bin/bash
# Three rewards from 0 to 1: plain output, values that come back, errors.
mkdir -p /logs/verifier
here=${0%/*}
out=$(bash json2env.sh "$here/plain.json" APP 2> /dev/null)
output=0
[ "$out" = "$(cat "$here/plain.want")" ] && output=1
[ $output = 1 ] || printf '%s\n' "$out" | diff "$here/plain.want" -

values=0
if out=$(bash json2env.sh sample.json X 2> /dev/null) && eval "$out"; then
  [ "$X_DB_PASSWORD" = "it's \$ecret \`x\`" ] && [ "$X_NOTE" = "two
lines" ] && [ "$X_DB_POOL_SIZE_1" = 10 ] && [ "$X_DEBUG" = false ] && [ "${X_NOTHING-unset}" = "" ] && [ "${X_EMPTY-unset}" = unset ] && values=1
fi

errors=0
echo '{"a-b": 1, "a_b": 2, "z": 3}' > /tmp/twice.json
out=$(bash json2env.sh /tmp/twice.json P 2> /tmp/err)
[ $? -eq 1 ] && [ -z "$out" ] && grep -qx "json2env.sh: duplicate name: P_A_B" /tmp/err && errors=$((errors + 1))
echo '{"a":' > /tmp/broken.json
for file in /tmp/broken.json /tmp/missing.json; do
  out=$(bash json2env.sh "$file" P 2> /tmp/err)
  [ $? -eq 2 ] && [ -z "$out" ] && [ -s /tmp/err ] && errors=$((errors + 1))
done

jq -n --argjson output $output --argjson values $values --argjson errors $errors '{output: $output, values: $values, errors: ($errors / 3)}' > /logs/verifier/reward.json
cat /logs/verifier/reward.json
