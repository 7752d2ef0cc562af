#!/bin/sh
# Stands in for an engine of containers: `exec -i NAME WORD…` runs the words here, with
# none of the variables that it was given.
shift 3
exec env -i PATH="$PATH" HOME="$HOME" "$@"
