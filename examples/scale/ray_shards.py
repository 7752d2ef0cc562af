"""An evaluation as tasks of Ray, one a shard. docs/scale.md says how to run it.

    python ray_shards.py SUITE DIR SHARDS --provider anthropic --jobs 16

DIR is on a disk that all machines share; what follows SHARDS are options of
`hermitcrab eval`. When a worker dies, Ray runs its task again, and --resume goes on
with the trials that are missing. After a failure run the same command again.
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import ray

HERMITCRAB = os.environ.get("HERMITCRAB", "hermitcrab")


@ray.remote(num_cpus=1, max_retries=5)
def run_shard(command: list[str], out: str, shard: str) -> tuple[int, str, int]:
    """Runs a shard to its end: exit code, errors and the process of the worker."""
    while True:
        done = subprocess.run([*command, "--out", out, "--shard", shard, "--resume"], capture_output=True, text=True)
        # The eval process of a worker that died may live on: it finishes the shard.
        if "is in use by another run" not in done.stderr:
            return done.returncode, done.stderr, os.getpid()
        time.sleep(1)


def main() -> None:
    suite, run, shards = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3])
    run.mkdir(parents=True, exist_ok=True)
    # All shards have one seed, also when this program is run again.
    seed = run / "seed"
    if not seed.exists():
        seed.write_text(secrets.token_hex(32))
    command = [HERMITCRAB, "eval", str(suite), "--seed", seed.read_text(), *sys.argv[4:]]

    ray.init()  # the cluster that RAY_ADDRESS names, else one on this machine
    outs = [str(run / f"shard-{number}") for number in range(1, shards + 1)]
    waiting = {run_shard.remote(command, out, f"{at}/{shards}"): at for at, out in enumerate(outs, start=1)}
    failed = False
    while waiting:
        for task in ray.wait(list(waiting))[0]:
            number = waiting.pop(task)
            code, errors, worker = ray.get(task)
            print(f"shard {number}: exit code {code}, by worker {worker}", flush=True)
            if code != 0:
                failed = True
                print(errors, file=sys.stderr, flush=True)
    if failed:
        sys.exit("some shards have trials without a verdict: run the same command again")
    shutil.rmtree(run / "all", ignore_errors=True)
    sys.exit(subprocess.run([HERMITCRAB, "eval", "merge", *outs, "--out", run / "all"]).returncode)


main()
