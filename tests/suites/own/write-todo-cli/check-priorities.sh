#!/bin/bash
# After the second input: adding, listing, finishing and priorities.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: wanted
$3
got
$2"; }
[ -f todo.sh ] || fail "todo.sh is missing"
export TODO_FILE=$(mktemp -d)/list
same "add" "$(bash todo.sh add one)" "added 1: one"
same "add -p" "$(bash todo.sh add -p B two words)" "added 2: two words"
bash todo.sh add -p A three > /dev/null
bash todo.sh add four > /dev/null
same "done" "$(bash todo.sh done 2)" "done 2: two words"
same "list" "$(bash todo.sh list)" "3 [ ] (A) three
2 [x] (B) two words
1 [ ] one
4 [ ] four"
same "list --open" "$(bash todo.sh list --open)" "3 [ ] (A) three
1 [ ] one
4 [ ] four"
bash todo.sh add -p D no > /dev/null 2>&1
[ $? -eq 2 ] || fail "priority D must exit with 2"
echo "priorities work"
