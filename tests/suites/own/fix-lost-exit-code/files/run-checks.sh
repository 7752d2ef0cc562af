#!/usr/bin/env bash
# Runs all checks: run-checks.sh
cd "$(dirname "$0")"

passed=0
failed=0
ls checks/*.check | while read check; do
  name=$(basename $check .check)
  bash $check | sed 's/^/    /'
  if [ $? -eq 0 ]; then
    echo "ok $name"
    passed=$((passed + 1))
  else
    echo "FAILED $name (exit $?)"
    failed=$((failed + 1))
  fi
done

echo "$passed passed, $failed failed"
exit $failed
