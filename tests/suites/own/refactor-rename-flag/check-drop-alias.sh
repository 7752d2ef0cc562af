#!/bin/bash
# After the second input: the alias is refused and the changelog says so. check.sh looks at the rest.
fail() { echo "FAIL: $*" >&2; exit 1; }
out=$(bash deploy.sh --fast a 2> /dev/null)
[ $? -eq 64 ] || fail "deploy.sh --fast must exit with 64"
[ -z "$out" ] || fail "deploy.sh --fast printed $out"
grep -qx -e '- --fast is gone; use --skip-checks\.' CHANGELOG.md || fail "the line in CHANGELOG.md is missing"
echo "the alias is gone"
