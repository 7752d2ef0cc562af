#!/bin/bash
# Pages of files of several lengths must be disjoint, complete and counted correctly.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
tmp=$(mktemp -d)

page() { bash pager.sh "$@" 2> "$tmp/err"; }

for count in 1 9 10 11 20 21 37; do
  for size in 1 7 10; do
    seq "$count" > "$tmp/in"
    pages=$(((count + size - 1) / size))
    : > "$tmp/all"
    for p in $(seq "$pages"); do
      page "$tmp/in" "$p" "$size" > "$tmp/out" || fail "$count lines by $size: page $p: exit code $?"
      [ "$(tail -n 1 "$tmp/out")" = "-- page $p of $pages --" ] || fail "$count lines by $size: footer of page $p is $(tail -n 1 "$tmp/out")"
      sed '$d' "$tmp/out" >> "$tmp/all"
    done
    cmp -s "$tmp/in" "$tmp/all" || fail "$count lines by $size: the pages together are not the file"
    page "$tmp/in" $((pages + 1)) "$size" > "$tmp/out"
    [ $? -eq 2 ] || fail "$count lines by $size: page $((pages + 1)) must exit with 2"
    grep -qF "pager.sh: no such page: $((pages + 1)) (there are $pages)" "$tmp/err" || fail "message: $(cat "$tmp/err")"
  done
done

printf 'one\ntwo\nthree' > "$tmp/open"
[ "$(page "$tmp/open" 2 2)" = "three
-- page 2 of 2 --" ] || fail "a last line without newline: $(page "$tmp/open" 2 2)"

: > "$tmp/empty"
page "$tmp/empty" 1 > /dev/null
[ $? -eq 2 ] || fail "an empty file has no page 1"
page "$tmp/in" 0 > /dev/null
[ $? -eq 2 ] || fail "there is no page 0"
[ "$(page sample/stations.txt 2)" = "$(sed -n '11,20p' sample/stations.txt; echo '-- page 2 of 2 --')" ] || fail "the default size is 10"
page "$tmp/missing" 1 > /dev/null
[ $? -eq 66 ] || fail "a missing file must still exit with 66"
echo "all pages are right"
