#!/bin/bash
# Runs each .rpn beside this file and the samples; .out is what must be printed, .code the exit code (0 where there is none).
export LC_ALL=C
here=${0%/*}
[ -f rpn.py ] || { echo "FAIL: rpn.py is missing" >&2; exit 1; }
failed=0
for input in samples/*.rpn "$here"/*.rpn; do
  want=0
  [ -f "${input%.rpn}.code" ] && want=$(cat "${input%.rpn}.code")
  out=$(python3 rpn.py < "$input" 2> /tmp/err.txt)
  code=$?
  if [ "$out" != "$(cat "${input%.rpn}.out")" ] || [ "$code" -ne "$want" ]; then
    echo "FAIL: $(basename "$input"): exit code $code (wanted $want), printed" >&2
    printf '%s\n' "$out" | diff "${input%.rpn}.out" - >&2
    tail -n 3 /tmp/err.txt >&2
    failed=1
  fi
done
[ $failed -eq 0 ] && echo "all inputs are right"
exit $failed
