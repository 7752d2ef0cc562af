# One call of a remote environment: `sh -c THIS hermitcrab OPERATION ARGUMENT…`. Needs the
# tools of GNU or BusyBox. What goes wrong is the exit code, as in remote/failure.rs; what
# has no code leaves a sentence of the system on standard error.

# Ends because $1 is not there: a part of the path may be a file, or closed.
missing() {
  above=$1
  while :; do
    above=${above%/*}
    [ -n "$above" ] || above=/
    if [ -e "$above" ]; then
      [ -d "$above" ] || exit 42
      [ -x "$above" ] || exit 43
      exit 40
    fi
    [ "$above" != / ] || exit 40
  done
}

# Ends unless $1 is a regular file.
regular() {
  [ -e "$1" ] || missing "$1"
  [ ! -d "$1" ] || exit 41
  [ -f "$1" ] || exit 45
}

# Runs a command, or ends for its reason.
try() {
  if said=$("$@" 2>&1); then return 0; fi
  case $said in
    *"ermission denied"* | *"not permitted"*) exit 43 ;;
    *"ead-only file system"*) exit 47 ;;
    *"ot a directory"*) exit 42 ;;
    *"ile exists"*) exit 42 ;;
    *"s a directory"*) exit 41 ;;
    *"o such file"*) exit 40 ;;
  esac
  printf '%s\n' "$said" >&2
  exit 49
}

# Where $1 leads, links followed, as far as it is there.
real() {
  path=$1
  links=0
  while :; do
    rest=
    known=$path
    while [ ! -e "$known" ] && [ ! -L "$known" ]; do
      rest=/${known##*/}$rest
      known=${known%/*}
      [ -n "$known" ] || known=/
    done
    if [ -e "$known" ]; then
      known=$(readlink -f -- "$known") || exit 49
      path=$known$rest
      return
    fi
    links=$((links + 1))
    [ "$links" -le 40 ] || exit 46
    target=$(readlink -- "$known")
    case $target in
      /*) path=$target$rest ;;
      *) path=${known%/*}/$target$rest ;;
    esac
  done
}

# How `stat` writes a time: with fractions where it can.
time_format() {
  time=%Y
  case $(stat -c %.3Y / 2> /dev/null) in
    *[!0-9.]*) ;;
    *.*) time=%.3Y ;;
  esac
  export time
}

operation=$1
shift
# The words of errors are read here; a command has its user's language.
[ "$operation" = run ] || { LC_ALL=C && export LC_ALL; }
case $operation in
  open) # DIRECTORY: where it is, and what is there
    [ -d "$1" ] || { [ -e "$1" ] && exit 42 || missing "$1"; }
    cd -- "$1" 2> /dev/null || exit 43
    [ -r /proc/self/environ ] || exit 48
    pwd -P
    uname -sr
    date +%z
    ;;
  read) # PATH MOST-BYTES
    regular "$1"
    [ -r "$1" ] || exit 43
    [ "$(stat -L -c %s -- "$1")" -lt "$2" ] || exit 44
    exec head -c "$2" -- "$1"
    ;;
  part) # PATH FIRST-BYTE BYTES
    regular "$1"
    [ -r "$1" ] || exit 43
    tail -c "+$2" -- "$1" | head -c "$3"
    ;;
  write) # PATH BYTES < CONTENT
    real "$1"
    target=$path
    [ ! -d "$target" ] || exit 41
    above=${target%/*}
    try mkdir -p -- "${above:-/}"
    aside=$above/.hermitcrab.$$
    trap 'rm -f -- "$aside"' EXIT
    if [ -e "$target" ]; then
      [ -f "$target" ] || exit 45
      [ -w "$target" ] || exit 43
      try cp -p -- "$target" "$aside"
      chmod u+w -- "$aside"
    fi
    [ -w "${above:-/}" ] || exit 43
    cat > "$aside" || exit 49
    [ "$(stat -c %s -- "$aside")" = "$2" ] || { echo "the content did not arrive whole" >&2; exit 49; }
    if [ -e "$target" ] && [ "$(stat -c %h -- "$target")" -gt 1 ]; then
      # The other names of the file keep it.
      cat "$aside" > "$target" || exit 49
    else
      [ ! -e "$target" ] || chmod "$(stat -c %a -- "$target")" -- "$aside"
      try mv -f -- "$aside" "$target"
    fi
    ;;
  stat) # PATH
    [ -e "$1" ] || missing "$1"
    time_format
    stat -L -c "%F|%s|$time" -- "$1" || exit 49
    ;;
  list) # PATH DEPTH: names that hold a line break are left out
    [ -e "$1" ] || missing "$1"
    [ -d "$1" ] || exit 42
    cd -- "$1" 2> /dev/null || exit 43
    [ -r . ] || exit 43
    time_format
    {
      find . -mindepth 1 -maxdepth "$2" ! -name '*
*' ! -type l -exec stat -c "%F|%s|$time|%n" -- {} +
      find . -mindepth 1 -maxdepth "$2" ! -name '*
*' -type l -exec sh -c '
        for name do
          if [ -f "$name" ]; then stat -L -c "link|%s|$time|%n" -- "$name"
          else printf "link|||%s\n" "$name"; fi
        done' sh {} +
    } 2> /dev/null | head -n 100001
    ;;
  real) # PATH
    real "$1"
    printf '%s' "$path"
    ;;
  remove) # PATH
    [ -e "$1" ] || [ -L "$1" ] || missing "$1"
    try rm -rf -- "$1"
    ;;
  rename) # FROM TO
    [ -e "$1" ] || [ -L "$1" ] || missing "$1"
    above=${2%/*}
    try mkdir -p -- "${above:-/}"
    [ ! -d "$2" ] || [ -L "$2" ] || [ -d "$1" ] || exit 41
    [ ! -d "$2" ] || [ -L "$2" ] || try rmdir -- "$2"
    try mv -f -- "$1" "$2"
    ;;
  make) # PATH
    [ ! -e "$1" ] || [ -d "$1" ] || exit 42
    try mkdir -p -- "$1"
    ;;
  run) # MARK DIRECTORY COMMAND NAME=VALUE…
    [ -d "$2" ] || { [ -e "$2" ] && exit 42 || missing "$2"; }
    cd -- "$2" 2> /dev/null || exit 43
    mark=$1
    command=$3
    shift 3
    pipes=${TMPDIR:-/tmp}/hermitcrab-$mark
    mkdir -m 700 -- "$pipes" || exit 49
    trap 'rm -rf -- "$pipes"' EXIT
    mkfifo "$pipes/out" "$pipes/err" || exit 49
    cat "$pipes/out" &
    out=$!
    cat "$pipes/err" >&2 &
    err=$!
    shell=sh
    ! command -v bash > /dev/null || shell=bash
    # In a new session, without a terminal, where the system has that.
    first=
    ! command -v setsid > /dev/null || first=setsid
    $first env "$@" "HERMITCRAB_COMMAND=$mark" "$shell" -c "$command" \
      < /dev/null > "$pipes/out" 2> "$pipes/err" &
    leader=$!
    # Without what the shell says of one that was killed.
    echo "$leader" > "$pipes/leader"
    { wait "$leader"; code=$?; } 2> /dev/null
    rm -f -- "$pipes/leader"
    # Whoever still holds the pipes was left in the background.
    { sleep 0.3; kill "$out" "$err"; } < /dev/null > /dev/null 2>&1 &
    timer=$!
    wait "$out" "$err"
    kill "$timer" 2> /dev/null
    # Only a command that ran has this line; so its code is its own.
    printf '\036%s %s' "$mark" "$code" >&2
    ;;
  stop) # MARK: everything that the command started, politely and then not
    # BusyBox may run its own tools without exec: then the first process has no mark.
    all() {
      grep -lsF "HERMITCRAB_COMMAND=$1" /proc/[0-9]*/environ | cut -d / -f 3
      cat "${TMPDIR:-/tmp}/hermitcrab-$1/leader" 2> /dev/null
    }
    found=$(all "$1")
    # Held, so that none sees another one end and goes on.
    for signal in STOP TERM CONT; do
      [ -z "$found" ] || kill -s "$signal" $found 2> /dev/null
    done
    tenths=0
    while [ "$tenths" -lt 19 ]; do
      [ -n "$(all "$1")" ] || exit 0
      sleep 0.1
      tenths=$((tenths + 1))
    done
    for again in 1 2 3; do
      found=$(all "$1")
      [ -n "$found" ] || exit 0
      kill -s KILL $found 2> /dev/null
    done
    ;;
esac
