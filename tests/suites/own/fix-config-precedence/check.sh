#!/bin/bash
# Asks for settings in all three places.
export LC_ALL=C
unset APP_HOST APP_PORT APP_HOSTNAME APP_GREETING APP_QUERY APP_PROXY APP_TOKEN
fail() { echo "FAIL: $*" >&2; exit 1; }
# want EXIT TEXT NAME: what `settings.sh NAME` must print, newline included
want() {
  local out
  out=$(bash settings.sh "$3" 2> /dev/null; echo "exit $?")
  [ "$out" = "$2exit $1" ] || fail "$3: wanted <$2exit $1>, got <$out>"
}
nl='
'
want 0 "127.0.0.1$nl" host
want 0 "app.internal$nl" hostname
want 0 "9090$nl" port
want 0 "Good   morning$nl" greeting
want 0 "lang=fr&theme=light$nl" query
want 0 "$nl" proxy
want 1 "" token
want 1 "" hos
want 1 "" "ho.t"
APP_PORT=7070 want 0 "7070$nl" port
APP_QUERY="a=b=c  d" want 0 "a=b=c  d$nl" query
APP_HOST="" want 0 "$nl" host
APP_TOKEN=xyz want 0 "xyz$nl" token

printf 'name=plain\n\tdeep.key\t=\tx = y # z  \n#name = no\nname_2 = * \\t\n' > config/default.conf
rm config/local.conf
want 0 "plain$nl" name
want 0 "x = y # z$nl" deep.key
want 0 "* \\t$nl" name_2
want 1 "" deepxkey
(cd / && bash "$OLDPWD/settings.sh" name) > /tmp/out 2>&1 || fail "from another directory: $(cat /tmp/out)"
[ "$(cat /tmp/out)" = plain ] || fail "from another directory: $(cat /tmp/out)"
echo "the order is right"
