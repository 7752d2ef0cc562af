"""The trajectories of evaluations, read by the models that others made of the
format: the package `atif`, and Harbor's own validator where there is a Python
3.12 or newer for it.

    cargo xtask test atif

makes a virtual environment with `requirements-atif.txt` and runs this with the
binary's path and a folder for what it makes.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from atif import Trajectory

HARBOR = "harbor==0.26.0"


def shell(command):
    return {"tool_calls": [{"name": "shell", "arguments": {"command": command}}]}


TASKS = {
    "plain": [shell("echo hi > a.txt; ls"), {"text": "done"}],
    "thinking": [
        {"text": "Let me look.", "thinking": {"text": "Where is it?", "signature": "c2ln"}, **shell("ls /nowhere")},
        {"text": "", **shell("exit 3")},
        {"text": "done"},
    ],
    "several": [
        {"tool_calls": shell("sleep 1; echo 1")["tool_calls"] + shell("echo 2")["tool_calls"]},
        {"tool_calls": [{"name": "no_such_tool", "arguments": {}}]},
        {"tool_calls": [{"name": "shell", "raw_arguments": "{\"command\": "}]},
        {"text": "done"},
    ],
    "subagent": [
        {"tool_calls": [{"name": "spawn_agent", "arguments": {"task": "look around"}}]},
        {"match": {"not_contains": "status: running"}, "text": "I looked"},
        {"text": "done"},
    ],
    "retried": [
        {"error": {"status": 429, "headers": {"retry-after": "0"}}},
        {"text": "done"},
    ],
    "refused": [{"error": {"status": 400, "message": "no"}}],
}


def run(binary, place):
    shutil.rmtree(place / "out", ignore_errors=True)
    lines = [
        json.dumps({"name": name, "instruction": "go", "check": "true", "script": {"steps": steps}})
        for name, steps in TASKS.items()
    ]
    suite = place / "trajectories.jsonl"
    suite.write_text("\n".join(lines))
    subprocess.run([binary, "eval", suite, "--out", place / "out", "--retries", "0"], check=True)
    return sorted(place.glob("out/trials/*/trajectory.json"))


def check_references(whole):
    """What no model checks: references lead somewhere, results belong to calls, sums are right."""
    inside = {one["trajectory_id"]: one for one in whole.get("subagent_trajectories", [])}
    shown = set()
    for one in [whole, *inside.values()]:
        assert one["final_metrics"]["total_steps"] == len(one["steps"]), one["trajectory_id"]
        for step in one["steps"]:
            calls = [call["tool_call_id"] for call in step.get("tool_calls", [])]
            assert len(calls) == len(set(calls)), step
            results = step.get("observation", {}).get("results", [])
            assert [result["source_call_id"] for result in results] == calls, step
            for result in results:
                for reference in result.get("subagent_trajectory_ref", []):
                    shown.add(reference["trajectory_id"])
    assert shown == set(inside), (shown, set(inside))


def newer_python():
    names = ["python3.14", "python3.13", "python3.12"]
    found = [path for path in map(shutil.which, names) if path]
    found += sorted(map(str, Path.home().glob(".pyenv/versions/3.1[234]*/bin/python")))
    # The shims of pyenv are there for versions that are not chosen, too.
    works = lambda path: subprocess.run([path, "-c", ""], capture_output=True).returncode == 0
    return next(filter(works, found), None)


def harbor(place, files):
    python = newer_python()
    if python is None:
        print("harbor is not asked: it needs Python 3.12 or newer")
        return
    own = place / "harbor/bin/python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", place / "harbor"], check=True)
    subprocess.run([own, "-m", "pip", "install", "--quiet", HARBOR], check=True)
    subprocess.run([own, "-c", """
import sys
from harbor.utils.trajectory_validator import TrajectoryValidator
for file in sys.argv[1:]:
    validator = TrajectoryValidator()
    assert validator.validate(file), (file, validator.errors)
""", *files], check=True)
    print(f"harbor: {len(files)} trajectories are valid")


def main():
    binary, place = sys.argv[1], Path(sys.argv[2])
    files = run(binary, place)
    assert len(files) == len(TASKS), files
    for file in files:
        text = file.read_text()
        Trajectory.model_validate_json(text)
        check_references(json.loads(text))
    print(f"atif: {len(files)} trajectories are valid")
    harbor(place, files)


main()
