#!/usr/bin/env bash
# Prints one setting: settings.sh NAME
cd "$(dirname "$0")"

name=$1
variable=APP_$(echo "$name" | tr a-z A-Z)

value=${!variable}
for file in config/local.conf config/default.conf; do
  found=$(grep "$name" $file | cut -d= -f2)
  if [ -n "$found" ]; then
    value=$found
  fi
done

if [ -z "$value" ]; then
  echo "settings.sh: unknown setting: $name" >&2
  exit 1
fi
echo $value
