# The tests of slug.sh. Run them with:  sh test.sh
passed=0
failed=0

check() {
  got=$(sh slug.sh "$1")
  if [ "$got" = "$2" ]; then
    passed=$((passed + 1))
    echo "ok    $1"
  else
    failed=$((failed + 1))
    echo "FAIL  $1: expected $2, got $got"
  fi
}

check "Hello World" "hello-world"
check "Rock & Roll" "rock-roll"
check "Tides, Shells -- and Moves!" "tides-shells-and-moves"
check "C3PO" "c3po"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
