#!/bin/bash
# Expands the variables and compares the rules with those of the Makefile as it was.
export LC_ALL=C
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }
tmp=$(mktemp -d)

# Prints what make would see of a Makefile's rules: definitions applied, comments and empty lines left out.
expand() {
  awk '
    function expand(text,   before, name) {
      while (match(text, /\$\([A-Z]+\)|\$\{[A-Z]+\}/)) {
        name = substr(text, RSTART + 2, RLENGTH - 3)
        before = substr(text, 1, RSTART - 1)
        text = before (name in value ? value[name] : "<" name ">") substr(text, RSTART + RLENGTH)
      }
      return text
    }
    /^[A-Z]+ *:= */ { name = $1; sub(/:=.*/, "", name); line = $0; sub(/^[A-Z]+ *:= */, "", line); value[name] = expand(line); next }
    /^#/ || /^$/ { next }
    { print expand($0) }
  ' "$1"
}

expand "$here/original.mk" > "$tmp/want"
expand Makefile > "$tmp/got"
diff "$tmp/want" "$tmp/got" > "$tmp/diff" || fail "the rules changed (< as it was, > now):
$(cat "$tmp/diff")"

# once TEXT NAME: TEXT stands only in the definition of NAME
once() {
  local lines
  lines=$(sed 's|build/release-notes||g' Makefile | grep -nF -e "$1")
  [ "$(printf '%s\n' "$lines" | wc -l)" -eq 1 ] || fail "$1 must stand in the file once:
$lines"
  sed 's/[[:space:]]*$//' Makefile | grep -qE "^$2 *:= *$(printf '%s' "$1" | sed 's/\./\\./g')$" || fail "$2 is not defined as $1"
}
once 1.3.0 VERSION
once build/release BUILD
once "-O2 -Wall -Wextra" CFLAGS
[ "$(grep -o 'build/release-notes' Makefile | wc -l)" -eq 3 ] || fail "build/release-notes must stay as it is"
[ "$(grep -c '^#' Makefile)" -eq 2 ] || fail "the two comments must stay"
grep -qx '# The manual is installed, too\.' Makefile || fail "the comment at install is not as it should be"
first=$(grep -nE '^[^#A-Z[:space:]]' Makefile | head -n 1 | cut -d: -f1)
for name in VERSION BUILD CFLAGS; do
  [ "$(grep -nE "^$name *:=" Makefile | cut -d: -f1)" -lt "$first" ] || fail "$name must stand before the rules"
done
echo "same rules, no repetition"
