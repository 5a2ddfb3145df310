"""May many threads call a function for the first time at once?"""

import importlib
import sys
import threading

import numpy as np
import pytest
import ufuse

BACKENDS = ["compiled"]

X = np.linspace(0.5, 2.0, 12).reshape(3, 4)
# Of such a lambda the whole file is read.
MODULE = (
    "import numpy as np\n" + "y = 1\n" * 300 + "f = lambda x, a: np.sqrt(x * x + a).sum(axis=1)\n"
)


@pytest.fixture(autouse=True)
def impatience():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_first_calls_of_many_threads(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    wrong = []

    def call(function, start, k):
        try:
            start.wait()
            for a in (1.0, 2.0, 3.0):
                if not np.array_equal(function(X * k, a), function.__wrapped__(X * k, a)):
                    wrong.append((k, a))
        except BaseException as error:
            wrong.append(error)

    for i in range(15):
        name = f"called_at_once_{i}"
        (tmp_path / f"{name}.py").write_text(MODULE)
        function = ufuse.jit(importlib.import_module(name).f)
        start = threading.Barrier(8)
        threads = [threading.Thread(target=call, args=(function, start, k)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
