#!/bin/bash
# Looks at the upgraded files, then upgrades hidden ones.
export LC_ALL=C
here=${0%/*}
fail() { echo "FAIL: $*" >&2; exit 1; }
[ -f upgrade.sh ] || fail "upgrade.sh is missing"
# is FILE WANTED: the file holds this JSON
is() { [ "$(jq -cS . "$1")" = "$(printf '%s' "$2" | jq -cS .)" ] || fail "$1: wanted $2, got $(jq -c . "$1")"; }

is configs/alpha.json '{"version":2,"listen":"10.1.0.4:9000","users":[{"name":"abe","hash":"h$aa"},{"name":"zoe","hash":"h$zz"}],"log":{"level":"debug"},"timeout_ms":2500,"features":{"search":true,"limits":[1,2,null]}}'
is configs/beta.json '{"version":2,"listen":"0.0.0.0:8080","users":[],"log":{"file":"/var/log/beta.log","level":"info"}}'
cmp -s configs/gamma.json "$here/gamma.json" || fail "configs/gamma.json was version 2 and must stay as it was"

mkdir work && cp "$here"/in/* work/ || exit 1
cd work || exit 1
bash ../upgrade.sh a.json "with space.json" broken.json three.json none.json list.json last.json > out.txt 2> err.txt
[ $? -eq 1 ] || fail "broken files must give exit code 1"
is a.json '{"name":"a","listen":"0.0.0.0:1","users":[{"name":"x y","hash":""}],"log":{"level":"info"},"timeout_ms":0,"version":2}'
is "with space.json" '{"listen":"h:8080","users":[],"log":{"level":"debug","keep":[1]},"timeout_ms":290,"version":2,"host_name":"stays","nested":{"host":"stays","port":1,"timeout":9}}'
is last.json '{"version":2,"listen":"0.0.0.0:8080","users":[],"log":{"level":"info"}}'
for file in broken.json three.json none.json list.json; do
  cmp -s "$file" "$here/in/$file" || fail "$file must stay as it was"
  grep -q "^upgrade.sh: $file: ." err.txt || fail "no message about $file: $(cat err.txt)"
done
[ "$(grep -c '^upgrade.sh: ' err.txt)" -eq 4 ] || fail "wanted four messages, got: $(cat err.txt)"

cp last.json before.json
bash ../upgrade.sh last.json a.json || fail "a second run must do nothing and exit with 0"
cmp -s last.json before.json || fail "a second run changed last.json"
[ "$(ls)" = "$(printf '%s\n' a.json before.json broken.json err.txt last.json list.json none.json out.txt three.json 'with space.json')" ] || fail "files were left behind: $(ls)"
echo "upgraded"
