"""The shards of an evaluation under an engine that hands out indices: Ray, with two
workers, one of which is killed half way. What Kubernetes and Slurm would start is
started here by hand.

    cargo xtask test ray

makes a virtual environment with `requirements-ray.txt` and runs this with the
binary's path and a folder for what it makes. Ray listens on all addresses, so all
of it runs in namespaces that have only loopback and end with this program.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SCALE = ROOT / "examples/scale"
TRIALS, SHARDS = 200, 20
EACH = TRIALS // SHARDS
# How long anything may take before the test gives up.
PATIENCE = 300
RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}


def inside_namespaces() -> None:
    """Starts this program again without a network, if it has one."""
    if os.environ.get("HERMITCRAB_NAMESPACE"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            up = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
            fcntl.ioctl(any_socket, 0x8914, up)  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING
        return
    command = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        print("Ray is not tested: this system has no network namespaces for us")
        sys.exit()
    os.environ["HERMITCRAB_NAMESPACE"] = "1"
    os.execvp(command[0], [*command, sys.executable, *sys.argv])


def until(what, found, done=lambda: False):
    """The first thing that `found` finds."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and not done():
        thing = found()
        if thing:
            return thing
        time.sleep(0.005)
    raise AssertionError(f"{what} has not come")


def write_suite(place: Path) -> Path:
    suite = place / "suite.jsonl"
    with suite.open("w") as file:
        for number in range(TRIALS):
            name = f"task-{number:03}"
            call = {"name": "shell", "arguments": {"command": f"echo {name} > name"}}
            steps = [{"delay_ms": 100, "tool_calls": [call]}, {"delay_ms": 100, "text": "done"}]
            task = {"name": name, "instruction": "go", "check": f"grep -qx {name} name", "script": {"steps": steps}}
            file.write(json.dumps(task) + "\n")
    return suite


def lines(out: Path) -> list[str]:
    """The whole lines of the results in `out`."""
    file = out / "results.jsonl"
    return file.read_text().splitlines(keepends=True) if file.exists() else []


def whole(out: Path) -> list[str]:
    return [line for line in lines(out) if line.endswith("\n")]


def keys(rows: list[str]) -> list[tuple]:
    return [(row["task"], row["trial"]) for row in map(json.loads, rows)]


def evals(binary: str):
    """Processes that run a shard: its number, the process and its parent."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode().split("\0")
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if command[:2] == [binary, "eval"] and "--shard" in command and state != "Z":
            number = command[command.index("--shard") + 1].partition("/")[0]
            yield int(number), int(entry.name), int(parent)


def shards_of(run: Path) -> list[Path]:
    return [run / f"shard-{number}" for number in range(1, SHARDS + 1)]


def kill_half_way(binary: str, run: Path, eval_too: bool, done) -> tuple[int, int, list[str]]:
    """Kills a worker whose shard is under way; the shard, the worker and its rows then."""

    def under_way():
        if sum(len(whole(out)) for out in shards_of(run)) < TRIALS // 2 - EACH:
            return None
        for number, process, worker in evals(binary):
            if 2 <= len(whole(run / f"shard-{number}")) <= EACH // 2:
                return number, process, worker
        return None

    number, process, worker = until("a shard under way", under_way, done)
    name = Path(f"/proc/{worker}/cmdline").read_bytes()
    assert name.startswith(b"ray::run_shard"), name
    # It stands still until the retry of the task has met it.
    os.kill(process, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    rows = whole(run / f"shard-{number}")
    assert 0 < len(rows) < EACH, f"shard {number} had {len(rows)} trials"
    if eval_too:
        os.kill(process, signal.SIGKILL)
    else:
        another = lambda: [it for it in evals(binary) if it[0] == number and it[2] != worker and it[1] != process]
        until("the retry beside the process that is left", another, done)
        os.kill(process, signal.SIGCONT)
    return number, worker, rows


def ray_run(binary: str, suite: Path, run: Path, address: str, eval_too: bool) -> None:
    began = time.monotonic()
    environment = {**os.environ, "HERMITCRAB": binary, "RAY_ADDRESS": address}
    command = [sys.executable, SCALE / "ray_shards.py", suite, run, str(SHARDS), "--jobs", "1"]
    with (run.parent / f"{run.name}.log").open("w+") as log:
        driver = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            number, worker, rows = kill_half_way(binary, run, eval_too, lambda: driver.poll() is not None)
            code = driver.wait(PATIENCE)
        finally:
            driver.kill()
            log.seek(0)
            text = log.read()
            if sys.exc_info()[0]:
                print(text)
    assert code == 0, text
    by = {
        int(line.split()[1].strip(":")): int(line.split()[-1])
        for line in text.splitlines()
        if line.startswith("shard ")
    }
    assert sorted(by) == list(range(1, SHARDS + 1)), text
    assert by[number] != worker, text

    expected = sorted((f"task-{number:03}", 1) for number in range(TRIALS))
    for out in shards_of(run):
        assert len(lines(out)) == EACH == len(set(keys(lines(out)))), out
    merged = lines(run / "all")
    assert sorted(keys(merged)) == expected, "lost or doubled"
    assert all(json.loads(row)["outcome"] == "passed" for row in merged), "not passed"
    # What the dead worker had recorded counts as it was.
    assert set(rows) <= set(merged), "recorded trials were run again"
    logs = list(run.glob("all/trials/*/log.gz"))
    assert len(logs) == TRIALS, len(logs)
    subprocess.run([binary, "replay", *logs], check=True, stdout=subprocess.DEVNULL)
    took = time.monotonic() - began
    victims = "a worker and its eval" if eval_too else "a worker alone"
    killed = f"{victims} killed after {len(rows)} of {EACH} trials of shard {number}"
    print(f"ray: {killed}, {len(merged)} results, {took:.0f} s", flush=True)


def with_ray(binary: str, place: Path, suite: Path) -> None:
    os.environ.update(RAY)
    import ray

    # Beside the other files, paths of sockets would be too long.
    with tempfile.TemporaryDirectory(prefix="hermitcrab-") as sockets:
        local = {"_node_ip_address": "127.0.0.1", "include_dashboard": False, "_temp_dir": sockets}
        ray.init(num_cpus=2, log_to_driver=False, logging_level="error", **local)
        try:
            address = ray.get_runtime_context().gcs_address
            ray_run(binary, suite, place / "worker", address, eval_too=False)
            ray_run(binary, suite, place / "both", address, eval_too=True)
        finally:
            ray.shutdown()


def same_shard(command: list[str], environment: dict, out: Path, like: Path) -> None:
    """Runs a shard as an engine would; it has the trials and seeds of Ray's."""
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    trials = lambda out: sorted((row["task"], row["trial"], row["seed"]) for row in map(json.loads, lines(out)))
    assert trials(out) == trials(like) != [], out


def by_hand(binary: str, place: Path, suite: Path) -> None:
    """What the other examples start, started."""
    named = {"SUITE": str(suite), "SEED": (place / "both/seed").read_text()}
    environment = {**os.environ, **named, "PATH": f"{Path(binary).parent}:{os.environ['PATH']}"}

    job = yaml.safe_load((SCALE / "kubernetes.yaml").read_text())
    assert (job["kind"], job["spec"]["completions"]) == ("Job", SHARDS)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    own = {it["name"]: it["value"] for it in container["env"]}
    assert own["SHARDS"] == str(SHARDS) and len(own["SEED"]) == 64
    # No key is here: the scripts of the tasks play.
    (script,) = container["args"]
    command = [*container["command"], script.replace("--provider anthropic", "")]
    run = place / "kubernetes"
    for index in (0, SHARDS - 1):
        here = {**own, **environment, "RUN": str(run), "JOB_COMPLETION_INDEX": str(index)}
        same_shard(command, here, run / f"shard-{index}", place / f"both/shard-{index + 1}")
    print("kubernetes.yaml: the first and the last shard are those of Ray")

    subprocess.run(["bash", "-n", SCALE / "slurm.sh"], check=True)
    run = place / "slurm"
    for index in (1, SHARDS):
        here = {**environment, "RUN": str(run), "SLURM_ARRAY_TASK_ID": str(index)}
        same_shard(["bash", SCALE / "slurm.sh"], here, run / f"shard-{index}", place / f"both/shard-{index}")
    print("slurm.sh: the first and the last shard are those of Ray")


def documented() -> None:
    """docs/scale.md shows the files as they are."""
    text = (ROOT / "docs/scale.md").read_text()
    for name in ("ray_shards.py", "kubernetes.yaml", "slurm.sh"):
        assert (SCALE / name).read_text() in text, f"docs/scale.md shows another {name}"


def main() -> None:
    documented()
    inside_namespaces()
    binary, place = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve() / "runs"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    suite = write_suite(place)
    with_ray(binary, place, suite)
    by_hand(binary, place, suite)


main()
