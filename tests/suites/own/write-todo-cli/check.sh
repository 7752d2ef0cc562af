#!/bin/bash
# All commands, odd texts and errors, after the last input.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: wanted
$3
got
$2"; }
[ -f todo.sh ] || fail "todo.sh is missing"
tmp=$(mktemp -d)
export TODO_FILE=$tmp/list
todo() { bash todo.sh "$@" 2> "$tmp/err"; }
# code WANTED ARGUMENTS...: exit code, nothing on stdout, something on stderr, the list unchanged
code() {
  local want=$1 out got before
  shift
  before=$(bash todo.sh list)
  out=$(todo "$@"); got=$?
  [ "$got" -eq "$want" ] || fail "$*: exit code $got, wanted $want"
  [ -z "$out" ] && [ -s "$tmp/err" ] || fail "$*: an error must go to stderr only"
  same "the list after $*" "$(bash todo.sh list)" "$before"
}

same "an empty list" "$(todo list; echo $?)" 0
same "add 1" "$(todo add buy   milk)" "added 1: buy milk"
same "add 2" "$(todo add 'a\n*%s "q" $HOME'"'")" 'added 2: a\n*%s "q" $HOME'"'"
same "add 3" "$(todo add -p C '[x] (A) odd  text')" 'added 3: [x] (A) odd  text'
same "add 4" "$(todo add -p A 7 days)" "added 4: 7 days"
same "add 5" "$(todo add '|tab	end|')" "added 5: |tab	end|"
same "add 6" "$(todo add -p A urgent)" "added 6: urgent"
same "done 2" "$(todo done 2)" 'done 2: a\n*%s "q" $HOME'"'"
same "done 3" "$(todo done 3)" 'done 3: [x] (A) odd  text'
same "done 3 again" "$(todo done 3)" 'done 3: [x] (A) odd  text'
same "list" "$(todo list)" '4 [ ] (A) 7 days
6 [ ] (A) urgent
3 [x] (C) [x] (A) odd  text
1 [ ] buy milk
2 [x] a\n*%s "q" $HOME'"'"'
5 [ ] |tab	end|'
same "list --open" "$(todo list --open)" '4 [ ] (A) 7 days
6 [ ] (A) urgent
1 [ ] buy milk
5 [ ] |tab	end|'

code 1 done 7
grep -qx "todo.sh: no task 7" "$tmp/err" || fail "done 7: $(cat "$tmp/err")"
code 1 done 0
code 1 rm 1 9 2
grep -qx "todo.sh: no task 9" "$tmp/err" || fail "rm 9: $(cat "$tmp/err")"
code 2
code 2 add
code 2 add -p A
code 2 add -p Z text
code 2 frobnicate

same "rm" "$(todo rm 5 1)" "removed 5: |tab	end|
removed 1: buy milk"
same "list after rm" "$(todo list)" '3 [ ] (A) 7 days
4 [ ] (A) urgent
2 [x] (C) [x] (A) odd  text
1 [x] a\n*%s "q" $HOME'"'"
same "clean" "$(todo clean)" "cleaned 2"
same "list after clean" "$(todo list)" '1 [ ] (A) 7 days
2 [ ] (A) urgent'
same "clean again" "$(todo clean)" "cleaned 0"

unset TODO_FILE
mkdir "$tmp/here"
script=$PWD/todo.sh
(cd "$tmp/here" && bash "$script" add here > /dev/null && bash "$script" list) > "$tmp/out"
same "todo.txt" "$(cat "$tmp/out")" "1 [ ] here"
[ -s "$tmp/here/todo.txt" ] || fail "without TODO_FILE the tasks go to todo.txt"
echo "the list works"
