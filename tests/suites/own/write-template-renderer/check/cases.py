"""Small templates, their data and what must come out; runs render.py in this interpreter."""
import contextlib
import io
import json
import os
import runpy
import sys
import tempfile

folder = tempfile.mkdtemp()
failures = []


def run(template, data):
    paths = [os.path.join(folder, "t"), os.path.join(folder, "d.json")]
    with open(paths[0], "w", encoding="utf-8", newline="") as file:
        file.write(template)
    with open(paths[1], "w", encoding="utf-8") as file:
        json.dump(data, file)
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    err = io.StringIO()
    code = 0
    saved = sys.argv
    sys.argv = ["render.py", *paths]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_path("render.py", run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            err.write(end.code + "\n")
    except BaseException as error:
        return None, f"{type(error).__name__}: {error}", 1
    finally:
        sys.argv = saved
    out.flush()
    return out.buffer.getvalue().decode(), err.getvalue(), code


def case(template, data, expected):
    out, err, code = run(template, data)
    if out is not None and out.endswith("\n") and not expected.endswith("\n"):
        out = out[:-1]  # a newline at the very end is forgiven
    if (out, code) != (expected, 0):
        failures.append(f"{template!r} with {json.dumps(data)}: wanted {expected!r}, got {out!r} {err} (exit code {code})")


def error(template, line):
    out, err, code = run(template, {"a": [1], "b": 1})
    if code != 1 or out or not err.startswith(f"render.py: line {line}: "):
        failures.append(f"{template!r}: wanted an error in line {line}, got {out!r}, {err!r} (exit code {code})")


case("a {{x}} b", {"x": "1"}, "a 1 b")
case("{{ x }}{{x }}{{  x}}", {"x": "<&>\"'"}, "&lt;&amp;&gt;&quot;&#39;" * 3)
case("{{{ x }}}|{{{x}}}", {"x": "<&>\"'"}, "<&>\"'|<&>\"'")
case("{{a.b.1.c}}", {"a": {"b": [0, {"c": "deep"}]}}, "deep")
case("[{{no}}{{a.no}}{{a.9}}{{n}}]", {"a": [1], "n": None}, "[]")
case("{{i}} {{f}} {{t}} {{n}} {{z}}", {"i": 2, "f": 1.5, "t": True, "n": False, "z": 0}, "2 1.5 true false 0")
case("{{{o}}} {{{l}}} {{l}}", {"o": {"b": 1, "a": [None, "ä"]}, "l": ["x"]}, '{"b":1,"a":[null,"ä"]} ["x"] [&quot;x&quot;]')
case("{{.}}", "top", "top")
case("{{.}}", 7, "7")
for value in (False, None, 0, 0.0, "", [], {}):
    case("{{#if x}}yes{{else}}no{{/if}}", {"x": value}, "no")
for value in (True, 1, -1, "0", " ", [0], {"a": None}):
    case("{{#if x}}yes{{else}}no{{/if}}", {"x": value}, "yes")
case("{{#if x}}yes{{/if}}.", {}, ".")
case("{{#each l}}<{{.}}>{{/each}}", {"l": [1, "b", None]}, "<1><b><>")
case("{{#each l}}{{n}}{{o}},{{/each}}", {"l": [{"n": 1}, {"n": 2, "o": "in"}], "o": "out"}, "1out,2in,")
case("{{#each l}}{{o.p}}{{/each}}", {"l": [{"o": {}}, {"x": 1}], "o": {"p": "P"}}, "PP")
case("{{#each l}}x{{else}}none{{/each}}", {"l": []}, "none")
case("{{#each l}}x{{else}}none{{/each}}", {}, "none")
case("{{#each l}}x{{/each}}", {"l": []}, "")
case("{{#each rows}}{{#each cells}}{{.}}{{sep}}{{/each}}\n{{/each}}", {"rows": [{"cells": [1, 2]}, {"cells": [3], "sep": ";"}], "sep": ","}, "1,2,\n3;\n")
case("{{#each l}}{{#each .}}{{.}}{{/each}}|{{/each}}", {"l": [[1, 2], [], [3]]}, "12||3|")
case("{{#each l}}{{#if on}}{{name}}{{else}}-{{/if}}{{/each}}", {"l": [{"on": 1, "name": "a"}, {"name": "b"}]}, "a-")
case("{{#if a}}{{#if b}}1{{else}}2{{/if}}{{else}}3{{/if}}", {"a": 1}, "2")
case("{{# if a }}x{{ / if }}{{# each l }}y{{ else }}z{{ /each }}", {"a": 1, "l": [1]}, "xy")
case("{ {x} } }} $1 \\1 \n\r\n\t{", {"x": 1}, "{ {x} } }} $1 \\1 \n\r\n\t{")
case("{{x}}", {"x": "{{y}}", "y": "no"}, "{{y}}")
case("", {}, "")
error("a\n{{#if b}}\nx", 2)
error("{{#each a}}{{#if b}}{{/each}}{{/if}}", 1)
error("a\nb {{/if}}", 2)
error("\n\n{{else}}", 3)
error("{{#if b}}{{else}}\n{{else}}{{/if}}", 2)
error("x\n{{ b", 2)
error("{{#loop a}}{{/loop}}", 1)

if failures:
    print("\n".join(failures))
    sys.exit(1)
print("all templates are right")
