#!/bin/sh
# Turns a title into a slug: lower case, words joined by single dashes.
# usage: slug.sh TITLE

printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -c 'a-z0-9' '-' | sed -e 's/^-//' -e 's/-$//'
echo
