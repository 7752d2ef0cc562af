# Reads the options of deploy.sh into variables.
parse() {
  fast=no
  fast_forward=no
  help=no
  target=
  while [ $# -gt 0 ]; do
    case $1 in
      --fast) fast=yes ;;
      --fast-forward) fast_forward=yes ;;
      --help) help=yes ;;
      -*)
        echo "deploy.sh: unknown option: $1" >&2
        exit 64
        ;;
      *) target=$1 ;;
    esac
    shift
  done
  if [ "$help" = no ] && [ -z "$target" ]; then
    echo "deploy.sh: no target" >&2
    exit 64
  fi
}
