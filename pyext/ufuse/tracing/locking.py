"""Who may make twins and tables now?

One lock for all of the package's tables, so that two threads cannot wait for each other's. It is
taken for the time of a fork: a child, in which the thread that held it is missing, finds the tables
whole and the lock free.
"""

from __future__ import annotations

import os
import threading

tables = threading.RLock()
os.register_at_fork(
    before=tables.acquire, after_in_parent=tables.release, after_in_child=tables.release
)
