"""Which thread may change the package's tables?

There is one lock for all of them, so that two threads cannot wait for each other. It is held during
a fork. A child has only the thread that forked: it finds complete tables and a free lock.
"""

from __future__ import annotations

import os
import threading

tables = threading.RLock()
os.register_at_fork(
    before=tables.acquire, after_in_parent=tables.release, after_in_child=tables.release
)
