#!/bin/bash
# Orders, levels, cycles and errors.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
[ -f order.sh ] || fail "order.sh is missing"
tmp=$(mktemp -d)
words() { tr '\n' ' ' | sed 's/ $//'; }
# order WANTED ARGUMENTS...
order() {
  local want=$1 out
  shift
  out=$(bash order.sh "$@") || fail "$*: exit code $?"
  out=$(printf '%s\n' "$out" | words)
  [ "$out" = "$want" ] || fail "$*: wanted <$want>, got <$out>"
}
# refuse MESSAGE ARGUMENTS...
refuse() {
  local want=$1 out
  shift
  out=$(bash order.sh "$@" 2> "$tmp/err")
  [ $? -eq 1 ] || fail "$*: the exit code must be 1"
  [ -z "$out" ] || fail "$*: printed $out"
  [ "$(cat "$tmp/err")" = "$want" ] || fail "$*: wanted <$want>, got <$(cat "$tmp/err")>"
}
order "markdown posts feed style templates pages search site" site.deps
order "markdown posts feed" site.deps feed
order "markdown posts style templates pages search" site.deps search style
order "markdown" site.deps markdown
[ "$(bash order.sh --levels site.deps)" = "markdown style
posts templates
feed pages
search site" ] || fail "--levels: $(bash order.sh --levels site.deps)"
[ "$(bash order.sh --levels site.deps feed style)" = "markdown style
posts
feed" ] || fail "--levels with targets"
refuse "order.sh: unknown target: nothing" site.deps pages nothing

printf 'b: a\nb: c B\na :\n  c:a a\n\n#x: y\nz.1:b#c\n' > "$tmp/two"
order "B a c b z.1" "$tmp/two"
printf 'x: y\nm: n\nn: k\nk: m\ny: z\n' > "$tmp/cycle"
refuse "order.sh: cycle: k -> m -> n -> k" "$tmp/cycle"
order "z y x" "$tmp/cycle" x
printf 'self: other self\n' > "$tmp/self"
refuse "order.sh: cycle: self -> self" "$tmp/self"
refuse "order.sh: cycle: self -> self" --levels "$tmp/self" self
printf 'head: c\nb: c\nc: b\n' > "$tmp/tail"
refuse "order.sh: cycle: b -> c -> b" "$tmp/tail" head
printf 'a: b\n# fine\nno colon here\n' > "$tmp/bad"
refuse "order.sh: line 3: expected TARGET: NEEDS" "$tmp/bad"
: > "$tmp/none"
order "" "$tmp/none"
awk 'BEGIN { for (i = 1; i < 60; i++) print "t" i ": t" i + 1 }' > "$tmp/chain"
[ "$(bash order.sh "$tmp/chain" | head -n 2 | words)" = "t60 t59" ] || fail "a chain of 60"
[ "$(bash order.sh --levels "$tmp/chain" | wc -l)" -eq 60 ] || fail "levels of a chain of 60"
echo "the order is right"
