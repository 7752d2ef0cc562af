#!/bin/bash
# Merges the samples and hidden logs with offsets over midnight, leap days and stack traces.
export LC_ALL=C
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }
[ -f merge.sh ] || fail "merge.sh is missing"
same() { [ "$2" = "$3" ] || fail "$1: wanted
$3
got
$2"; }

same "the samples" "$(bash merge.sh samples/web.log samples/db.log samples/cron.log)" "2024-05-01T10:00:00.000Z cron: tick
2024-05-01T10:00:02.250Z db: ready
2024-05-01T10:00:03.000Z web: started
2024-05-01T10:00:09.000Z web: error: no database
  java.lang.IllegalState
      at Pool.take
2024-05-01T10:00:09.000Z db: refused a connection
2024-05-01T10:00:59.999Z db: checkpoint
2024-05-01T10:01:00.000Z web: retry
2024-05-01T10:01:00.000Z cron: tick"

same "the order of files decides" "$(bash merge.sh samples/cron.log samples/web.log | sed -n '/10:01:00/p')" "2024-05-01T10:01:00.000Z cron: tick
2024-05-01T10:01:00.000Z web: retry"
same "one file" "$(bash merge.sh samples/cron.log)" "2024-05-01T10:00:00.000Z cron: tick
2024-05-01T10:01:00.000Z cron: tick"
out=$(bash merge.sh "$here/one.log" "$here/two words.log" "$here/empty.log") || fail "hidden logs: exit code $?"
same "hidden logs" "$out" "$(cat "$here/want.txt")"
echo "merged"
