#!/usr/bin/env bash
# Deploys a build: deploy.sh [--fast] [--fast-forward] TARGET
set -eu
. "$(dirname "$0")/lib/options.sh"

usage() {
  cat <<'END'
usage: deploy.sh [OPTIONS] TARGET

  --fast           deploy without running the checks
  --fast-forward   refuse when the target is ahead
  --help           print this text
END
}

parse "$@"
if [ "$help" = yes ]; then
  usage
  exit 0
fi
if [ "$fast" = no ]; then
  echo "running checks"
fi
if [ "$fast_forward" = yes ]; then
  echo "comparing with $target"
fi
echo "deployed to $target"
