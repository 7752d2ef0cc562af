#!/bin/sh
# Runs every case; exits 0 only if all pass.

passed=0
failed=0

check() {
    actual=$(sh slug.sh "$1")
    if [ "$actual" = "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: '$1' gives '$actual', expected '$2'"
    fi
}

check 'Hello World' 'hello-world'
check 'Hermit  crabs, moving house' 'hermit-crabs-moving-house'
check '  Shell & shelter!  ' 'shell-shelter'
check 'Plain' 'plain'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
