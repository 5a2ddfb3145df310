"""Does the reference say of each public name what its docstring says? It is made of them here."""

import inspect
import os
import re
from pathlib import Path

import pytest
import ufuse

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
INTRODUCTION = """\
# Reference

What `import ufuse` gives. `ufuse.numpy` has the names of NumPy, and needs no list here. This page
is made from the docstrings (`make golden`), whose examples run in the tests.
"""
ITEMS = ("Parameters", "Returns", "Yields", "Raises", "Attributes")


def sections(text):
    """The parts of a docstring: its title, None for the beginning, and its lines."""
    found, lines = [(None, [])], text.splitlines()
    for at, line in enumerate(lines):
        if at + 1 < len(lines) and line and re.fullmatch("-+", lines[at + 1]):
            found.append((line, []))
        elif not re.fullmatch("-+", line):
            found[-1][1].append(line)
    return found


def code(text):
    """Code as Markdown has it; what looks like HTML stays visible."""
    return text.replace("``", "`")


def items(lines):
    """Lines of names, each with indented text behind it, as a list."""
    made = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith(" "):
            made.append(f"  {code(line.strip())}")
        elif line:
            name, _, kind = line.partition(" : ")
            end = ":" * following.startswith(" ")
            made.append(f"- `{name}`{f' ({code(kind)})' if kind else ''}{end}")
    return "\n".join(made)


def prose(lines):
    """Paragraphs, with what is indented or an example as code."""
    made, is_code = [], False
    for line in lines:
        begins_code = line.startswith((">>>", "    "))
        if begins_code and not is_code:
            made += ["```pycon" if line.startswith(">>>") else "```text"]
        if is_code and not begins_code and (not line or made[-1] == ""):
            made += ["```"]
        is_code = begins_code or (is_code and bool(line))
        made.append(line if is_code else code(line.removesuffix("::") + ":" * line.endswith("::")))
    return "\n".join([*made, *["```"] * is_code]).strip("\n")


def described(value):
    parts = []
    for title, lines in sections(inspect.getdoc(value)):
        text = items(lines) if title in ITEMS else prose(lines)
        parts.append(f"**{title}**\n\n{text}" if title else text)
    return "\n\n".join(parts)


def signature(value):
    """Names and defaults; types stand in the text."""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(value).parameters.values()
        if each.name != "self"
    ]
    return str(inspect.Signature(parameters))


def entry(name, value, level=2):
    call = f"\n```text\n{name}{signature(value)}\n```\n" if inspect.isroutine(value) else ""
    return f"{'#' * level} {name}\n{call}\n{described(value)}\n"


def page():
    parts = [INTRODUCTION]
    for name in sorted(set(ufuse.__all__) - {"ndarray", "Function"}, key=str.lower):
        value = getattr(ufuse, name)
        parts.append(entry(f"ufuse.{name}", value if callable(value) else type(value)))
    parts.append(entry("ufuse.Function", ufuse.Function))
    for name in sorted(set(dir(ufuse.jit(page))) & set(vars(ufuse.Function))):
        if not name.startswith("_"):
            parts.append(entry(f"Function.{name}", vars(ufuse.Function)[name], 3))
    from ufuse import dask

    parts.append(entry("ufuse.dask.map", dask.map))
    return "\n".join(parts)


def test_reference_page():
    pytest.importorskip("dask.array")
    if "UFUSE_TEST_UPDATE_GOLDEN" in os.environ:
        PAGE.write_text(page())
    assert PAGE.read_text() == page()
