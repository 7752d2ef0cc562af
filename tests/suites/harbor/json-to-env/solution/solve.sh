#!/bin/bash
cat > json2env.sh <<'END'
#!/usr/bin/env bash
# Prints shell assignments for the values of a JSON file: json2env.sh FILE PREFIX
if ! all=$(jq --arg prefix "$2" '
  [paths(type != "object" and type != "array") as $p
   | {name: ([$prefix] + ($p | map(tostring)) | join("_") | ascii_upcase | gsub("[^A-Z0-9_]"; "_")), value: getpath($p)}]
  | sort_by(.name)' "$1"); then
  echo "json2env.sh: cannot read $1" >&2
  exit 2
fi
twice=$(printf '%s' "$all" | jq -r 'map(.name) | group_by(.) | map(select(length > 1)[0]) | .[0] // empty')
if [ -n "$twice" ]; then
  echo "json2env.sh: duplicate name: $twice" >&2
  exit 1
fi
printf '%s' "$all" | jq -r '.[] | .name + "=" + (if .value == null then "" else .value | tostring end | @sh)'
END
