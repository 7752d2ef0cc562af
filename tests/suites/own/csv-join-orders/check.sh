#!/bin/bash
# Looks at the three files, then runs join.sh over other tables.
export LC_ALL=C
fail() { echo "FAIL: $*" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: wanted
$3
got
$2"; }
[ -f join.sh ] || fail "join.sh is missing"
script=$PWD/join.sh

samples() {
  same "joined.csv ($1)" "$(cat joined.csv)" "order,date,name,country,euros
11,2024-01-15,Lantern Street,SE,1200.00
12,2024-01-31,Hilltop Dairy,BE,25.50
13,2024-01-31,Marsh & Sons,NL,9.95
9,2024-02-01,Blue Door,NL,19.99
10,2024-02-01,Marsh & Sons,NL,0.05
100,2024-02-01,Hilltop Dairy,BE,20.00
15,2024-02-10,Old Forge,SE,-5.00"
  same "orphans.csv ($1)" "$(cat orphans.csv)" "order,customer
14,C9"
  same "by-country.csv ($1)" "$(cat by-country.csv)" "country,orders,euros
SE,2,1195.00
BE,2,45.50
NL,3,29.99"
}
samples "as it was left"
rm joined.csv orphans.csv by-country.csv
bash "$script" > /dev/null || fail "join.sh: exit code $?"
samples "run again"

mkdir other && cd other || exit 1
printf 'order,customer,date,cents\r\n2,a,2023-01-02,10\r\n1,b,2023-01-02,10\r\n\r\n3,A,2023-01-01,7\r\n4,zz,2022-12-31,1000001\r\n' > orders.csv
printf 'id,name,country\r\na,Ann & Co,PT\r\nb,Bo,ES\r\nzz,Zed,\r\n' > customers.csv
bash "$script" > /dev/null || fail "join.sh in another folder: exit code $?"
same "joined.csv with CRLF" "$(cat joined.csv)" "order,date,name,country,euros
4,2022-12-31,Zed,,10000.01
1,2023-01-02,Bo,ES,0.10
2,2023-01-02,Ann & Co,PT,0.10"
same "orphans.csv with CRLF" "$(cat orphans.csv)" "order,customer
3,A"
same "by-country.csv with CRLF" "$(cat by-country.csv)" "country,orders,euros
,1,10000.01
ES,1,0.10
PT,1,0.10"
! grep -q "$(printf '\r')" joined.csv orphans.csv by-country.csv || fail "a carriage return is left"
echo "joined"
