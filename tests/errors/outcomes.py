"""What does a call leave behind when it raises or warns?

``both(function, *args)`` runs a function plain and jitted, each on its own copies of the arguments,
from one and the same line, and gives the two ``Trail``s. User code tells of its progress by
``step``.
"""

import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import ufuse
from same import copied, jitted, same

HERE = str(Path(__file__).parent)
OURS = str(Path(ufuse.__file__).parent)
STEPS: list[Any] = []


def step(what=None):
    """Note that user code has come this far."""
    STEPS.append(what)
    return what


class Trail(NamedTuple):
    """All that a caller can see of one run."""

    result: Any
    error: BaseException | None
    args: Any
    steps: list[Any]
    warnings: list[Any]

    def entries(self):
        """The user's lines in the traceback, with their columns, outermost first."""
        found = traceback.extract_tb(self.error.__traceback__)
        return [
            (e.name, e.lineno, e.colno, e.end_colno) for e in found if e.filename.startswith(HERE)
        ]

    def files(self):
        """The files of the whole traceback."""
        return {e.filename for e in traceback.extract_tb(self.error.__traceback__)}


def run(function, args, action="always"):
    """Call ``function`` on ``args`` under one warning filter."""
    STEPS.clear()
    result = error = None
    warnings.onceregistry.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        try:
            result = function(*args)
        except BaseException as raised:
            error = raised
    seen = [(w.category, str(w.message), w.filename, w.lineno) for w in caught]
    return Trail(result, error, args, list(STEPS), seen)


def both(function, *args, action="always"):
    """The trails of NumPy and of the jitted function."""
    theirs, ours = (run(f, copied(args), action) for f in (function, jitted(function)))
    return theirs, ours


def equal(ours, theirs, what):
    """Assert equality, with both sides in the message."""
    assert ours == theirs, f"{what}:\n  ours  {ours}\n  NumPy {theirs}"


def compare(theirs, ours):
    """Assert that two runs cannot be told apart."""
    if theirs.error is None:
        if ours.error is not None:
            raise AssertionError("only the jitted function raises") from ours.error
    else:
        assert ours.error is not None, f"no exception, but NumPy raises {theirs.error!r}"
        equal(type(ours.error), type(theirs.error), "exception")
        equal(str(ours.error), str(theirs.error), "exception's text")
        equal(ours.entries(), theirs.entries(), "traceback")
        equal([file for file in ours.files() if file.startswith(OURS)], [], "frames of ufuse")
    equal(ours.steps, theirs.steps, "progress of user code")
    same(ours.result, theirs.result)
    same(ours.args, theirs.args, "arguments afterwards")
    equal(ours.warnings, theirs.warnings, "warnings")


def check(function, *args, action="always"):
    """Twice, because the second call may be a replay: the same as NumPy in everything."""
    for _ in range(2):
        theirs, ours = both(function, *args, action=action)
        compare(theirs, ours)
    return theirs
