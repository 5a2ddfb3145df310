"""How many threads may a loop use?"""

from __future__ import annotations

import operator

from . import _core

_MOST = 1 << 16
# Whether a program has set the number of threads.
is_set = False


def set_num_threads(threads: int) -> None:
    """Set how many threads a loop may use; results do not depend on it.

    Parameters
    ----------
    threads : int
        At least 1; 0 stands for the default: ``OMP_NUM_THREADS`` where it is set, else the CPUs
        that this process may use.

    Raises
    ------
    TypeError
        When ``threads`` is no integer.
    ValueError
        When it is negative or above 65536.

    Examples
    --------
    >>> import ufuse
    >>> ufuse.set_num_threads(1)
    >>> ufuse.get_num_threads()
    1
    >>> ufuse.set_num_threads(0)
    """
    count = operator.index(threads)
    if not 0 <= count <= _MOST:
        raise ValueError(f"threads must be from 0 (the default) to {_MOST}, not {count}")
    global is_set
    is_set = count > 0
    _core.set_num_threads(count)


def get_num_threads() -> int:
    """Tell how many threads a loop may use.

    Returns
    -------
    int

    Examples
    --------
    >>> import ufuse
    >>> ufuse.get_num_threads() >= 1
    True
    """
    return _core.get_num_threads()
