"""What is wrong where the compiled module cannot be loaded, and what helps?

Asked by the package when importing ``_core`` has failed, so nothing of the package is used here.
The doctor, which then says only this, takes the form of its lines from here.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path


def explained(error: ImportError) -> ImportError:
    """The same error with advice. ``python -m ufuse doctor`` ends here, with a line of its report.

    Raises
    ------
    SystemExit
        In ``python -m ufuse``, which needs no traceback.
    """
    trouble, advice = _diagnosis(error)
    if _is_command():
        print(line("module", False, trouble, advice))
        raise SystemExit(1)
    return ImportError(
        f"the compiled module of ufuse cannot be loaded: {trouble}. {advice}",
        name=error.name,
        path=error.path,
    )


def line(name: str, good: bool, text: str, advice: str) -> str:
    """One check of the doctor's report, and what helps where it is bad."""
    told = f"{'ok ' if good else 'BAD'} {name:9} {text}"
    return told if good or not advice else f"{told}\n    {'':9} {advice}"


def _diagnosis(error: ImportError) -> tuple[str, str]:
    """What is wrong, and what helps."""
    trouble = str(error)
    if error.name == __package__:  # it has no `_core`: Python found none
        folder = Path(__file__).parent
        others = ", ".join(sorted(each.name for each in folder.glob("_core*.so")))
        version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        only = f", only {others}" if others else ""
        return f"{folder} has none for {version}{only}", "Install ufuse with this Python."
    if "libomp" in trouble:
        return (
            trouble,
            "OpenMP's library is missing. On Debian and Ubuntu: apt-get install libomp-dev",
        )
    if "numpy" in trouble.lower():
        return trouble, "NumPy is missing, or too old for this build: pip install 'numpy>=1.24'"
    return trouble, "It may be damaged: pip install --force-reinstall ufuse"


def _is_command() -> bool:
    """Whether this is ``python -m ufuse``."""
    given = sys.orig_argv
    return "-mufuse" in given or ("-m", "ufuse") in itertools.pairwise(given)
