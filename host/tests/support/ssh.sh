#!/bin/sh
# Stands in for `ssh`, under that name in a directory of its own: runs calls here. It notes
# there how often a connection was made and where its socket is, which is a plain file. A
# call whose line holds `connection-breaks-here` has its effect and loses its connection.
here=$(dirname "$0")
for word in "$@"; do
    case $word in
    ControlPath=*) socket=${word#ControlPath=} ;;
    ControlPersist=*) persist=$word ;;
    -N) is_master=yes ;;
    -O) rm -f "$socket" && exit ;;
    esac
    line=$word
done
if [ -n "$is_master" ]; then
    : > "$socket"
    echo "$persist" >> "$here/made"
    echo "$socket" > "$here/socket"
    exit
fi
case $line in
*connection-breaks-here*)
    sh -c "$line" > "$here/lost" 2>&1
    echo 'client_loop: send disconnect: Broken pipe' >&2
    exit 255
    ;;
esac
exec sh -c "$line"
