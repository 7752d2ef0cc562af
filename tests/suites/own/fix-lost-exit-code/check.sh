#!/bin/bash
# Runs copies of run-checks.sh over folders of small checks.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
tmp=$(mktemp -d)
top=$PWD
fresh() { rm -rf "$tmp/p"; mkdir -p "$tmp/p/checks"; cp "$top/run-checks.sh" "$tmp/p/"; }
# want EXIT TEXT: what run-checks.sh must do, called from another directory
want() {
  local out code
  out=$(cd / && bash "$tmp/p/run-checks.sh" 2>&1 < /dev/null); code=$?
  [ "$out" = "$2" ] || fail "wanted
$2
got
$out"
  [ "$code" -eq "$1" ] || fail "exit code: wanted $1, got $code"
}

out=$(bash run-checks.sh 2>&1) || fail "the project's own checks: exit code $?: $out"
[ "$out" = "ok 10-versions
ok 20-no-tabs
ok 30 line length
3 passed, 0 failed" ] || fail "the project's own checks: $out"

fresh
echo 'echo quiet; true' > "$tmp/p/checks/a.check"
echo 'echo out; echo "  err" >&2; exit 7' > "$tmp/p/checks/b.check"
echo 'cat; echo done' > "$tmp/p/checks/c reads all.check"
echo 'false' > "$tmp/p/checks/d.check"
echo 'test -e run-checks.sh' > "$tmp/p/checks/e.check"
echo 'exit 9' > "$tmp/p/checks/notes.txt"
want 1 "ok a
    out
      err
FAILED b (exit 7)
ok c reads all
FAILED d (exit 1)
ok e
3 passed, 2 failed"

fresh
for n in 1 2 3; do echo 'exit 1' > "$tmp/p/checks/$n.check"; done
out=$(bash "$tmp/p/run-checks.sh"); code=$?
[ "$code" -eq 1 ] || fail "three failures must exit with 1, not $code"

fresh
echo true > "$tmp/p/checks/only.check"
want 0 "ok only
1 passed, 0 failed"

fresh
want 2 "no checks"
echo "failures are reported"
