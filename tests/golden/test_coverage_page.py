"""Does the documentation say of each function what the tables say? It is made of them here."""

import os
from pathlib import Path

from ufuse import _core

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
INTRODUCTION = """\
# What becomes loops, and what is NumPy's own

Three rules say it of most functions:

- **A ufunc of NumPy's or SciPy's becomes part of a loop** (`np.add`, `x * y`, `np.exp`,
  `scipy.special.erf`), with its methods `reduce` and `accumulate`.
- **A function of NumPy's that is written in Python is traced through its own source**, so that its
  array operations become loops too: `np.mean`, `np.linalg.norm`, `np.nan_to_num`.
- **A function of NumPy's that is written in C is NumPy's own call.** It ends the loop before it,
  and another one begins behind it. Where its result is made of nothing but its arguments, as that
  of `np.dot` or `np.linalg.solve` is, later calls repeat loops and NumPy's calls without Python;
  where it is not, as that of a random generator, Python runs at each call.

The tables below are the exceptions, and the functions in C. `f.explain(x)` says what a call really
did. This page is made from the tables that ufuse works by (`make golden`).
"""
FORMS = {
    "Native": "Part of a loop",
    "Twin": "Traced through NumPy's source",
    "Repeated": "NumPy's own call, which recorded calls repeat",
    "NumPy": "NumPy's own call, at which Python runs each time",
}


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def page():
    sentences = dict(_core.reasons())
    names = {}
    for module, name, form, what, _ in _core.surface():
        if not name.startswith("_"):
            whole = f"`x.{name}`" if module == "ndarray" else f"`{module}.{name}`"
            names.setdefault(form, {}).setdefault(what, []).append(whole)
    parts = [INTRODUCTION]
    for form in ("Native", "Twin"):
        rows = [(", ".join(found), f"`{what}`") for what, found in sorted(names[form].items())]
        parts.append(f"## {FORMS[form]}\n\n{table(('Functions', 'As'), rows)}\n")
    for form in ("Repeated", "NumPy"):
        rows = [(", ".join(found), sentences[what]) for what, found in sorted(names[form].items())]
        parts.append(f"## {FORMS[form]}\n\n{table(('Functions', 'Because'), rows)}\n")
    parts.append(
        "## Why a loop ends, or a function runs as plain NumPy\n\n"
        "These are the reasons that `explain` gives, by the names that its notes have.\n\n"
        + table(
            ("Name", "What happened"), ((f"`{name}`", text) for name, text in sentences.items())
        )
        + "\n"
    )
    return "\n".join(parts)


def test_coverage_page():
    if "UFUSE_TEST_UPDATE_GOLDEN" in os.environ:
        PAGE.write_text(page())
    assert PAGE.read_text() == page()
