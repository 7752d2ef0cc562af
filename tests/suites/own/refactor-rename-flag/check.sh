#!/bin/bash
# The new option works, the old one is unknown, and only the changelog names it.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
tmp=$(mktemp -d)
# want EXIT STDOUT ARGUMENTS...
want() {
  local code=$1 text=$2 got out
  shift 2
  out=$(bash deploy.sh "$@" 2> "$tmp/err"); got=$?
  [ "$got" -eq "$code" ] || fail "deploy.sh $*: exit code $got, wanted $code"
  [ "$out" = "$text" ] || fail "deploy.sh $*: printed <$out>, wanted <$text>"
}
want 0 "running checks
deployed to a" a
want 0 "deployed to a" --skip-checks a
[ -s "$tmp/err" ] && fail "--skip-checks must not warn: $(cat "$tmp/err")"
want 0 "comparing with a
deployed to a" a --fast-forward --skip-checks
want 64 "" --fast a
grep -q "unknown option: --fast" "$tmp/err" || fail "--fast: $(cat "$tmp/err")"
want 64 "" --skip a
bash deploy.sh --help > "$tmp/help" || fail "--help"
grep -q -- "--skip-checks" "$tmp/help" || fail "--help does not name --skip-checks"
grep -q -- "--fast-forward" "$tmp/help" || fail "--help does not name --fast-forward"
[ "$(bash hooks/post-merge)" = "comparing with staging
deployed to staging" ] || fail "hooks/post-merge: $(bash hooks/post-merge 2>&1)"

named=$(grep -rnE -e '--fast($|[^-a-z])' . | grep -v '^\./CHANGELOG.md:')
[ -z "$named" ] || fail "--fast is still named: $named"
for file in docs/deploy.md examples/nightly.txt hooks/post-merge; do
  grep -q -- --skip-checks "$file" || fail "$file does not name --skip-checks"
done
grep -q -- '--fast-forward`: a target that is ahead' docs/deploy.md || fail "docs/deploy.md lost --fast-forward"
grep -q 'A fast network' docs/deploy.md || fail "docs/deploy.md lost a sentence"
[ "$(awk '/^## /{ s = $2 } s == "Next" && /^- /' CHANGELOG.md | grep -cx -e '- --fast is gone; use --skip-checks\.')" = 1 ] || fail "the line in CHANGELOG.md is missing"
grep -qx -e '- `--fast` is new\.' CHANGELOG.md || fail "CHANGELOG.md lost its history"
echo "renamed"
