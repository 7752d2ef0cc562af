"""An evaluation under everything that goes wrong at once: a provider that answers
with faults, agents that spin, take all memory or kill their own processes, a driver
that is killed at random, and a disk that is full, three times. In the end every trial
counts once, with the outcome that it must have.

    cargo xtask test chaos

runs this with the binary's path and a folder for what it makes. Faults and kills
follow from the seed, which a third argument may give; whom they meet, from the machine.
"""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# How long anything may take before the test gives up.
PATIENCE = 300
KEY = "sk-chaos-1f0c5b7a9e3d2846"
OUTCOMES = {"passed": True, "failed": False, "limit": False, "agent_error": False, "infra_error": None}

# ---- What the model does -------------------------------------------------------

# By kind of task: how many, what its agent runs (one command a round; the last one is
# repeated without end if `endless`), settings of the task, and the outcomes that it
# may have.
MEMORY = {
    "pass": (116, ["echo {name} > name", "cat name"], {}, {"passed"}),
    "wrong": (30, ["echo another > name"], {}, {"failed"}),
    "spin": (8, ["jq -n 'last(repeat(1))'"], {}, {"failed", "limit"}),
    "memory": (8, ["awk 'BEGIN{{while(1) s = s \"xxxxxxxxxxxxxxxx\" s}}'"], {}, {"failed", "limit"}),
    "endless": (10, ["echo {name} > name"], {"limits": {"rounds": 3}}, {"limit"}),
    # The provider says nothing to `late`, refuses `refused`, and `down` until it is
    # repaired.
    "late": (8, [], {"limits": {"wall_ms": 300}}, {"limit"}),
    "refused": (8, [], {}, {"agent_error"}),
    "down": (12, ["echo {name} > name"], {}, {"passed"}),
}
LOCAL = {
    "pass": (16, ["echo {name} > name"], {}, {"passed"}),
    # Agents that kill their shell, all that it started, and the driver: this one the
    # first time only, or no run would come to its end.
    "shell": (10, ["kill -9 $$", "echo {name} > name"], {}, {"passed"}),
    "group": (6, ["echo {name} > name; sh -c 'kill -9 0'; sleep 98765"], {}, {"passed"}),
    "driver": (4, ["kill -9 {driver}; sleep 98765", "echo {name} > name"], {}, {"passed"}),
    "late": (4, ["sleep 98765"], {"limits": {"wall_ms": 400}}, {"limit"}),
}


def tasks(kinds: dict) -> dict[str, str]:
    """Names of tasks, and their kinds, in an order that mixes them."""
    names = {f"{kind}-{number:03}": kind for kind, (count, *_) in kinds.items() for number in range(count)}
    return dict(sorted(names.items(), key=lambda it: hashlib.sha256(it[0].encode()).digest()))


def write_suite(file: Path, kinds: dict) -> None:
    with file.open("w") as out:
        for name, kind in tasks(kinds).items():
            check = f"grep -qx {name} name"
            task = {"name": name, "instruction": f"Do {name}.", "check": check, **kinds[kind][2]}
            out.write(json.dumps(task) + "\n")


# ---- The provider --------------------------------------------------------------

FAULTS = ["429", "529", "reset", "stall", "silence", "garbage", "truncated", "broken"]
# Of ten requests so many meet a fault.
FAULTY = 3


def sse(events: list[dict]) -> bytes:
    return b"".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n".encode() for it in events)


def answer(text: str, command: str | None) -> bytes:
    usage = {"input_tokens": 100, "output_tokens": 1}
    blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": text})]
    if command is not None:
        call = {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {}}
        blocks.append((call, {"type": "input_json_delta", "partial_json": json.dumps({"command": command})}))
    reason = "end_turn" if command is None else "tool_use"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events = [{"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}]
    for index, (start, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}})
    return sse([*events, {"type": "message_stop"}])


class Provider(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, seed: str, kinds: dict):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seed, self.kinds, self.names = seed, kinds, tasks(kinds)
        self.is_faultless = self.is_repaired = False
        # The process of the run.
        self.driver = 0
        # Tasks whose agent has killed it.
        self.has_killed: set[str] = set()
        self.changed = threading.Condition()
        self.requests = 0
        self.served: Counter[str] = Counter()
        # By task and round, so that a fault does not depend on the order of trials.
        self.asked: Counter[tuple[str, int]] = Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def note(self, name: str, at: int) -> str:
        """What happens to a request."""
        with self.changed:
            self.requests += 1
            times = self.asked[name, at]
            self.asked[name, at] += 1
            self.changed.notify_all()
        draw = random.Random(f"{self.seed} {name} {at} {times}")
        kind = self.names[name]
        if kind == "refused":
            what = "400"
        elif kind == "late" and not self.kinds[kind][1]:
            what = "silence"
        elif kind == "down" and not self.is_repaired:
            what = "529"
        else:
            is_faulty = not self.is_faultless and draw.randrange(10) < FAULTY
            what = draw.choice(FAULTS) if is_faulty else "answer"
        with self.changed:
            self.served[what] += 1
        return what

    def handle_error(self, request, client_address):
        """A client that has gone is none of ours."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert self.headers["x-api-key"] == KEY
        said = body["messages"]
        name = re.search(r"Do ([a-z]+-\d+)\.", json.dumps(said)).group(1)
        at = sum(message["role"] == "assistant" for message in said)
        what = self.server.note(name, at)
        kind = self.server.names[name]
        commands = [command.format(name=name, driver=self.server.driver) for command in self.server.kinds[kind][1]]
        if kind == "driver" and at == 0 and what == "answer":
            if name in self.server.has_killed:
                commands[0] = "true"
            self.server.has_killed.add(name)
        if kind == "endless":
            command = f"{commands[0]}; echo {at}"
        else:
            command = commands[at] if at < len(commands) else None
        getattr(self, f"do_{what}")(answer(f"{name}, round {at}", command))

    def head(self, status: int, **headers):
        self.send_response(status)
        for header, value in {"content-type": "text/event-stream", "connection": "close", **headers}.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    def error(self, status: int, kind: str, **headers):
        self.head(status, content_type="application/json", **headers)
        self.wfile.write(json.dumps({"type": "error", "error": {"type": kind, "message": "no"}}).encode())

    def do_answer(self, stream: bytes):
        self.head(200)
        self.wfile.write(stream)

    def do_400(self, _):
        self.error(400, "invalid_request_error")

    def do_429(self, _):
        self.error(429, "rate_limit_error", retry_after="0")

    def do_529(self, _):
        self.error(529, "overloaded_error")

    def do_reset(self, _):
        """The connection breaks before a byte."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.request.close()

    def do_silence(self, _):
        """No byte comes until the client gives up."""
        self.close_connection = True
        self.request.recv(1)

    def do_stall(self, stream: bytes):
        """The stream stands still in its middle until the client gives up."""
        self.head(200)
        self.wfile.write(stream[: len(stream) // 2])
        self.close_connection = True
        self.request.recv(1)

    def do_garbage(self, stream: bytes):
        self.head(200)
        self.wfile.write(random.Random(stream).randbytes(4000))

    def do_truncated(self, stream: bytes):
        """The connection ends in good order, the stream does not."""
        self.head(200)
        self.wfile.write(stream[: len(stream) * 2 // 3])

    def do_broken(self, stream: bytes):
        """It breaks in the middle of a body whose length the head says."""
        self.head(200, content_length=str(len(stream)))
        self.wfile.write(stream[: len(stream) // 3])


# ---- The run -------------------------------------------------------------------


class Run:
    """A run that is started again and again, and what must hold after each time."""

    def __init__(self, binary: str, place: Path, name: str, kinds: dict, seed: str, options: list[str]):
        self.kinds, self.names, self.out = kinds, tasks(kinds), place / name / "out"
        self.chance = random.Random(f"{seed} {name}")
        self.provider = Provider(seed, kinds)
        suite, config = place / f"{name}.jsonl", place / f"{name}.config.json"
        write_suite(suite, kinds)
        retry = {"max_retries": 2, "base_delay_ms": 10, "multiplier": 2.0, "max_delay_ms": 50, "jitter": True}
        config.write_text(json.dumps({"retry": retry, "stream_idle_timeout_ms": 500}))
        self.command = [
            *[binary, "eval", suite, "--out", self.out, "--resume", "--jobs", "8"],
            *["--provider", "anthropic", "--base-url", self.provider.url, "--config", config],
            *["--retries", "4", "--retry-delay-ms", "10", *options],
        ]
        self.stderr = place / f"{name}.err"
        # Lines of trials with a verdict: they stay as they are.
        self.settled: dict[str, str] = {}
        self.kills = 0

    def start(self) -> subprocess.Popen:
        # A driver that is killed leaves the copies of its local trials in TMPDIR.
        place = str(self.stderr.parent)
        environment = {"PATH": os.environ["PATH"], "HOME": place, "TMPDIR": place, "ANTHROPIC_API_KEY": KEY}
        with self.stderr.open("w") as errors:
            driver = subprocess.Popen(self.command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        self.provider.driver = driver.pid
        return driver

    def kill_after(self, requests: int) -> None:
        """Kills the driver when the provider has had so many more requests."""
        driver, provider = self.start(), self.provider
        goal = provider.requests + requests
        give_up = time.monotonic() + PATIENCE
        with provider.changed:
            while provider.requests < goal and driver.poll() is None:
                assert time.monotonic() < give_up, "the run does not go on"
                provider.changed.wait(0.05)
        driver.kill()
        self.kills += driver.wait() == -signal.SIGKILL
        self.check()

    def to_the_end(self) -> tuple[int, str]:
        """Exit code and last line of the errors."""
        driver = self.start()
        try:
            code = driver.wait(PATIENCE)
        finally:
            driver.kill()
        self.check()
        said = self.stderr.read_text().splitlines()
        return code, said[-1] if said else ""

    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.lines()]

    def lines(self) -> list[str]:
        """The whole lines: what a killed driver left of its last one counts nowhere."""
        file = self.out / "results.jsonl"
        text = file.read_text() if file.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def check(self) -> None:
        """Every record is valid, and no verdict is lost, changed or doubled."""
        verdicts = {}
        for line in self.lines():
            row = json.loads(line)
            name = row["task"]
            assert row["trial"] == 1 and self.kinds[self.names[name]], row
            assert row["passed"] is OUTCOMES[row["outcome"]], row
            assert (row["reason"] is None) == (row["outcome"] == "passed"), row
            if row["passed"] is None:
                continue
            assert name not in verdicts, f"{name} counts twice"
            assert row["outcome"] in self.kinds[self.names[name]][3], row
            verdicts[name] = line
        for name, line in self.settled.items():
            assert verdicts.get(name) == line, f"{name} is not what it was: {line}"
        self.settled = verdicts

    def check_end(self, binary: str) -> Counter:
        """All trials are there, once, with their files."""
        lines, rows = self.lines(), self.rows()
        assert (self.out / "results.jsonl").read_text() == "".join(f"{line}\n" for line in lines)
        assert sorted(row["task"] for row in rows) == sorted(self.names), "lost or doubled"
        assert len(self.settled) == len(rows), "trials without a verdict"
        folders = {f"trials/{folder.name}" for folder in (self.out / "trials").iterdir()}
        assert folders == {row["dir"] for row in rows}
        for row in rows:
            trajectory = json.loads((self.out / row["dir"] / "trajectory.json").read_text())
            assert trajectory["schema_version"] == "ATIF-v1.7", row
            assert trajectory["extra"]["outcome"] == row["outcome"], row
            checked = self.out / row["dir"] / "check.json"
            assert checked.exists() == (row["outcome"] in ("passed", "failed")), row
            assert not checked.exists() or json.loads(checked.read_text()), row
        assert (self.out / "report.html").exists()
        logs = [self.out / row["dir"] / "log.gz" for row in rows]
        replay = subprocess.run([binary, "replay", *logs], capture_output=True, text=True, timeout=PATIENCE)
        assert replay.returncode == 0, replay.stdout + replay.stderr
        # A log that ends in the middle replays, too, as far as it goes.
        assert "ends in the middle" not in replay.stdout, replay.stdout
        return Counter(row["outcome"] for row in rows)


def report(run: Run, name: str, outcomes: Counter, began: float) -> None:
    faults = {what: run.provider.served[what] for what in sorted(run.provider.served)}
    assert set(FAULTS) <= set(faults), f"not all faults came: {faults}"
    trials = f"{sum(outcomes.values())} trials ({dict(sorted(outcomes.items()))})"
    requests = f"{run.provider.requests} requests ({faults})"
    took = f"{time.monotonic() - began:.0f} s"
    print(f"{name}: {trials}, driver killed {run.kills} times, {requests}, {took}", flush=True)


def mount(out: Path, size: str, options: str = "") -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"{options}size={size}", "none", out.parent]
    return subprocess.run(command, capture_output=True).returncode == 0


WAY_OUT = "the trials recorded so far are whole: make room and go on with --resume"


def in_memory(binary: str, place: Path, seed: str) -> None:
    began = time.monotonic()
    options = ["--max-memory-mib", "64", "--max-stall-ms", "500"]
    run = Run(binary, place, "memory", MEMORY, seed, options)
    run.out.parent.mkdir()
    has_disk = os.environ.get("HERMITCRAB_NAMESPACE") and mount(run.out, "1m")
    if not has_disk:
        print("the full disk is not tested: this system lets us mount nothing")
    for size in ["2500k", "4m", "256m"] if has_disk else []:
        for _ in range(2):
            run.kill_after(run.chance.randrange(1, 30))
        full = f"hermitcrab: cannot write to {run.out}: no space left on device; {WAY_OUT}"
        recorded = -1
        # What unfinished trials left is room for some more, in the end for none.
        while len(run.settled) != recorded:
            recorded = len(run.settled)
            assert run.to_the_end() == (1, full), run.stderr.read_text()
        assert 0 < recorded < len(run.names), recorded
        print(f"memory: the disk is full with {recorded} verdicts", flush=True)
        assert mount(run.out, size, "remount,")
    for _ in range(6):
        run.kill_after(run.chance.randrange(1, 60))
    for _ in range(8):
        code, said = run.to_the_end()
        open_ones = [row["task"] for row in run.rows() if row["passed"] is None]
        # The faults may have been too many for another one: it is run again.
        if {run.names[name] for name in open_ones} == {"down"}:
            break
    assert (code, said) == (1, "hermitcrab: 12 trials have no verdict: run again with --resume"), (code, said)
    run.provider.is_repaired = True
    run.kill_after(5)
    for _ in range(8):
        code, said = run.to_the_end()
        if code == 0:
            break
    assert code == 0, said
    report(run, "memory", run.check_end(binary), began)


def commands() -> list[int]:
    """Processes of commands of agents that are still there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"sleep\x0098765\x00" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def until(what: str, holds) -> None:
    give_up = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < give_up, f"{what} has not come"
        time.sleep(0.01)


def sleeps(process: int) -> bool:
    """Whether all threads of a process wait for something."""
    threads = Path(f"/proc/{process}/task").glob("*/stat")
    return {thread.read_text().rpartition(")")[2].split()[0] for thread in threads} == {"S"}


def under_way(binary: str, place: Path, seed: str) -> None:
    """Commands that are under way when the driver is killed end with it."""
    kinds = {"sleeper": (6, ["sleep 98765"], {}, set())}
    run = Run(binary, place, "sleepers", kinds, seed, ["--env", "local"])
    run.out.parent.mkdir()
    run.provider.is_faultless = True
    driver = run.start()
    until("a command for each trial", lambda: len(commands()) == 6 and sleeps(driver.pid))
    driver.kill()
    driver.wait()
    until("the end of all commands", lambda: not commands())
    print("local: 6 commands under way ended with their driver")


def on_this_machine(binary: str, place: Path, seed: str) -> None:
    if not os.environ.get("HERMITCRAB_NAMESPACE"):
        print("agents that kill processes are not tested: this system has no namespaces for us")
        return
    under_way(binary, place, seed)
    began = time.monotonic()
    run = Run(binary, place, "local", LOCAL, seed, ["--env", "local"])
    run.out.parent.mkdir()
    for _ in range(5):
        run.kill_after(run.chance.randrange(1, 30))
    for _ in range(16):
        code, said = run.to_the_end()
        if code == 0:
            break
        run.kills += code == -signal.SIGKILL
    assert code == 0, (code, said)
    assert len(run.provider.has_killed) == LOCAL["driver"][0]
    report(run, "local", run.check_end(binary), began)
    until("the end of all commands", lambda: not commands())


def inside_namespaces() -> None:
    """Starts this program again where mounts and processes are its own, if it can."""
    if os.environ.get("HERMITCRAB_NAMESPACE"):
        return
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
        os.environ["HERMITCRAB_NAMESPACE"] = "1"
        os.execvp(command[0], [*command, sys.executable, *sys.argv])


def main() -> None:
    inside_namespaces()
    binary, place = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve() / "runs"
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    in_memory(binary, place, seed)
    on_this_machine(binary, place, seed)


main()
