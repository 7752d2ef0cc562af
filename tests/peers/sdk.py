"""The official SDKs as witnesses: what our adapters send has the shape that
their types demand, and what `hermitcrab serve-model` streams, they can read.

    cargo xtask test sdk

makes a virtual environment with `requirements.txt` and runs this with the
binary's path. Requests: the golden files of tests/llm/requests, which the
adapters' own tests hold equal to what is sent.
"""

import json
import re
import subprocess
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import anthropic
import typing_extensions
import openai
from anthropic.types import message_create_params
from google import genai
from google.genai import types as google
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

ROOT = Path(__file__).resolve().parents[2]

# Fields of golden requests that the SDK's types do not know, each with the
# reason; everything else that is unknown is an error.
BEYOND = {
    "chat": {
        "reasoning_content": "of vLLM, DeepSeek and others",
        "extra_content": "a replay of what a server sent, of whatever kind",
    },
    "effort_of_an_unknown_model.json": {"effort": "an unknown model's levels pass through"},
    "fields_under_other_names.json": {"effort": "the case renames the field"},
    "provider_options_by_provider_name.json": dict.fromkeys("abc", "made-up options pass through"),
    "provider_options_last.json": dict.fromkeys(["verbosity", "top_k"], "options of the user's"),
    "sampling_in_an_old_version.json": dict.fromkeys(
        ["temperature", "top_p"], "an API version that the SDK has left behind"
    ),
}


def problems(value, hint, where="body"):
    """Every way in which a JSON value departs from a type of the SDK."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any or hint is object:
        return []
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return problems(value, args[0], where)
    if origin is typing.Union or origin is types.UnionType:
        tries = [problems(value, choice, where) for choice in args]
        return min(tries, key=depth)
    if origin is typing.Literal:
        return [] if value in args else [f"{where}: {value!r} is none of {args}"]
    if typing_extensions.is_typeddict(hint):
        return typed_dict(value, hint, where)
    if hint is None or hint is type(None):
        return [] if value is None else [f"{where}: {value!r} is not null"]
    if origin in (list, Iterable, Sequence, typing.Iterable):
        if not isinstance(value, list):
            return [f"{where}: not a list"]
        return [p for i, item in enumerate(value) for p in problems(item, args[0], f"{where}[{i}]")]
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            return [f"{where}: not an object"]
        return [p for k, item in value.items() for p in problems(item, args[1], f"{where}.{k}")]
    if hasattr(hint, "model_fields"):
        return model(value, hint, where)
    simple = {str: str, bool: bool, int: int, float: (int, float)}.get(hint)
    if simple is None:
        return []
    if not isinstance(value, simple) or (isinstance(value, bool) and hint is not bool):
        return [f"{where}: {value!r} is not {hint.__name__}"]
    return []


def depth(found):
    """Of several failed readings the one that got furthest is the meant one:
    one that fails at a discriminator was never meant."""
    wrong_kind = any(re.search(r"\.(type|role): ", p) for p in found)
    return (bool(found), wrong_kind, len(found), -max((p.count(".") for p in found), default=0))


def typed_dict(value, hint, where):
    if not isinstance(value, dict):
        return [f"{where}: not an object"]
    hints = typing_extensions.get_type_hints(hint, include_extras=True)
    found = [f"{where}.{name}: missing" for name in hint.__required_keys__ if name not in value]
    for name, item in value.items():
        if name not in hints:
            found.append(f"{where}.{name}: unknown to {hint.__name__}")
        else:
            found += problems(item, hints[name], f"{where}.{name}")
    return found


def model(value, hint, where):
    """A pydantic model: output types that may be sent back."""
    try:
        hint.model_validate(value)
    except ValueError as error:
        return [f"{where}: {str(error).splitlines()[0]}"]
    unknown = set(value) - {f.alias or n for n, f in hint.model_fields.items()}
    return [f"{where}.{name}: unknown to {hint.__name__}" for name in unknown]


def check_gemini(body):
    """The SDK builds the same JSON from its own classes, which forbid extras."""
    found = []
    parts = {
        "contents": lambda v: [google.Content.model_validate(c) for c in v],
        "systemInstruction": google.Content.model_validate,
        "tools": lambda v: [google.Tool.model_validate(t) for t in v],
        "toolConfig": google.ToolConfig.model_validate,
        "generationConfig": google.GenerationConfig.model_validate,
        "safetySettings": lambda v: [google.SafetySetting.model_validate(s) for s in v],
    }
    plain = {"cachedContent", "serviceTier", "store", "continuationToken", "labels"}
    for name, value in body.items():
        if name in plain:
            continue
        if name not in parts:
            found.append(f"body.{name}: unknown")
            continue
        try:
            parts[name](value)
        except ValueError as error:
            found.append(f"body.{name}: {' | '.join(str(error).splitlines()[:4])}")
    return found


CHECKS = {
    "anthropic": lambda b: problems(b, message_create_params.MessageCreateParamsStreaming),
    "openai": lambda b: problems(b, response_create_params.ResponseCreateParamsStreaming),
    "chat": lambda b: problems(b, completion_create_params.CompletionCreateParamsStreaming),
    "gemini": check_gemini,
}


def check_requests():
    """Every golden request, and that the check itself can fail."""
    failures, count, probed = [], 0, set()
    for path in sorted((ROOT / "tests/llm/requests").rglob("*.json")):
        for case in cases(path):
            http = case.get("expect", {}).get("http")
            if http is None:
                continue
            adapter = adapter_of(http["url"])
            count += 1
            beyond = BEYOND["chat"] if adapter == "chat" else {}
            beyond = {**beyond, **BEYOND.get(path.name, {})}
            found = [
                problem
                for problem in CHECKS[adapter](http["body"])
                if not any(f".{name}: " in problem for name in beyond)
            ]
            failures += [f"{path.relative_to(ROOT)} ({adapter}): {problem}" for problem in found]
            if adapter not in probed and not found:
                probed.add(adapter)
                failures += [f"{adapter}: the check overlooks {name}" for name in overlooked(adapter, http["body"])]
    failures += [f"no golden request of {adapter}" for adapter in CHECKS.keys() - probed]
    return count, failures


def overlooked(adapter, body):
    """Top-level fields and fields of the first message whose misspelling goes
    unnoticed."""
    missed = []
    for holder in [body, *(body.get(name) or [{}] for name in ["messages", "input", "contents"])]:
        holder = holder[0] if isinstance(holder, list) else holder
        for name in list(holder):
            holder[f"{name}_"] = holder.pop(name)
            if not CHECKS[adapter](body):
                missed.append(name)
            holder[name] = holder.pop(f"{name}_")
    return missed


def cases(path):
    """A file is one case, or one request with what each adapter makes of it."""
    data = json.loads(path.read_text())
    expect = data.get("expect", {})
    if "http" in expect or "error" in expect:
        return [data]
    return [{**data, "expect": each} for each in expect.values() if isinstance(each, dict)]


def adapter_of(url):
    for part, adapter in [
        ("/messages", "anthropic"),
        ("/responses", "openai"),
        ("/chat/completions", "chat"),
        ("GenerateContent", "gemini"),
        ("generateContent", "gemini"),
    ]:
        if part in url:
            return adapter
    raise SystemExit(f"no adapter for {url}")


SCRIPT = {
    "steps": [
        {
            "thinking": {"text": "Think it over", "signature": "c2ln"},
            "texts": ["Hel", "lo"],
            "tool_calls": [
                {"name": "read_file", "arguments": {"path": "a.rs", "limit": 3}},
                {"name": "list", "arguments": {}},
            ],
            "usage": {"input_tokens": 10, "output_tokens": 9, "reasoning_tokens": 4, "cache_read_tokens": 5},
        }
    ],
    "repeat_last": True,
}
CALLS = [("read_file", {"path": "a.rs", "limit": 3}), ("list", {})]


def read_anthropic(base):
    client = anthropic.Anthropic(api_key="k", base_url=base, max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream:
        message = stream.get_final_message()
    blocks = {block.type: block for block in message.content}
    calls = [(b.name, b.input) for b in message.content if b.type == "tool_use"]
    tokens = (message.usage.input_tokens + message.usage.cache_read_input_tokens, message.usage.output_tokens)
    return blocks["thinking"].thinking, blocks["text"].text, calls, tokens


def read_openai(base):
    client = openai.OpenAI(api_key="k", base_url=f"{base}/v1", max_retries=0)
    with client.responses.stream(model="m", input="x") as stream:
        response = stream.get_final_response()
    reasoning = next(item for item in response.output if item.type == "reasoning")
    calls = [(i.name, json.loads(i.arguments)) for i in response.output if i.type == "function_call"]
    tokens = (response.usage.input_tokens, response.usage.output_tokens)
    return reasoning.summary[0].text, response.output_text, calls, tokens


def read_chat(base):
    client = openai.OpenAI(api_key="k", base_url=f"{base}/v1", max_retries=0)
    thinking, text, calls, tokens = "", "", {}, None
    stream = client.chat.completions.create(
        model="m", stream=True, stream_options={"include_usage": True}, messages=[{"role": "user", "content": "x"}]
    )
    for chunk in stream:
        if chunk.usage:
            tokens = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        for choice in chunk.choices:
            thinking += getattr(choice.delta, "reasoning_content", None) or ""
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                name, arguments = calls.get(call.index, ("", ""))
                calls[call.index] = (name + (call.function.name or ""), arguments + (call.function.arguments or ""))
    return thinking, text, [(name, json.loads(a)) for _, (name, a) in sorted(calls.items())], tokens


def read_gemini(base):
    client = genai.Client(api_key="k", http_options={"base_url": base})
    thinking, text, calls, tokens = "", "", [], None
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        if chunk.usage_metadata:
            u = chunk.usage_metadata
            tokens = (u.prompt_token_count, u.candidates_token_count + (u.thoughts_token_count or 0))
        for part in chunk.candidates[0].content.parts or []:
            if part.function_call:
                calls.append((part.function_call.name, part.function_call.args))
            elif part.thought:
                thinking += part.text or ""
            else:
                text += part.text or ""
    return thinking, text, calls, tokens


READERS = {"anthropic": read_anthropic, "openai": read_openai, "chat": read_chat, "gemini": read_gemini}


def check_streams(binary, folder):
    script = Path(folder) / "script.json"
    script.write_text(json.dumps(SCRIPT))
    server = subprocess.Popen(
        [binary, "serve-model", str(script), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        base = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline()).group()
        failures = []
        expected = ("Think it over", "Hello", CALLS, (15, 9))
        for name, read in READERS.items():
            try:
                actual = read(base)
            except Exception as error:  # whatever an SDK throws is the finding
                actual = f"{type(error).__name__}: {error}"
            if actual != expected:
                failures.append(f"{name} reads {actual!r} instead of {expected!r}")
        return len(READERS), failures
    finally:
        server.terminate()
        server.wait()


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    requests, failures = check_requests()
    streams, more = check_streams(binary, folder)
    for failure in failures + more:
        print(f"FAILED {failure}")
    bad = len(failures) + len(more)
    print(f"sdk: {requests} requests and {streams} streams checked; {bad} problems")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
