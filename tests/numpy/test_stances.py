"""Do `ufuse.stance` and `jit(strict=True)` raise where they promise, and nowhere else?"""

import functools
import os
import pickle
import threading

import numpy as np
import pytest
import ufuse
from texts import function_of

BACKENDS = ["compiled"]
X = np.linspace(0.0, 1.0, 1000)
SPACE = {"np": np}


def made(text):
    """A function that nobody has looked at or compiled loops for."""
    return function_of(text, dict(SPACE))


FUSED = "def f(x):\n    return np.sqrt(x + 1).sum()\n"
SORTS = "def f(x):\n    y = x * 2\n    return np.sort(y)\n"
NO_TRACE = "def f(x):\n    x[0] = 7\n    return exec('1')\n"
ASKS = "def f(x):\n    return x + 1 if x.any() else x - 1\n"
WARNS = "def f(x):\n    return (x - np.inf) + np.inf\n"
RAISES = "def f(x):\n    raise KeyError('the user')\n"


def strict(function):
    return ufuse.jit(function, strict=True)


def under_stance(function):
    jitted = ufuse.jit(function)

    def call(*args):
        with ufuse.stance("fail_on_fallback"):
            return jitted(*args)

    return call


@pytest.mark.parametrize("wrap", [strict, under_stance])
class TestFallbacks:
    @pytest.mark.parametrize("text", [FUSED, ASKS, WARNS])
    def test_what_is_none(self, wrap, text):
        function = made(text)
        call = wrap(function)
        with np.errstate(invalid="ignore"):
            for _ in range(3):
                assert call(X).tobytes() == function(X).tobytes()

    def test_a_call_of_numpy_in_each_call(self, wrap):
        call = wrap(made(SORTS))
        for _ in range(3):
            with pytest.raises(ufuse.FallbackError, match=r"f: .*:3: NumPy call sort: .* native"):
                call(X)

    def test_a_function_that_cannot_be_traced_has_not_begun(self, wrap):
        call = wrap(made(NO_TRACE))
        x = X.copy()
        for _ in range(2):
            with pytest.raises(ufuse.FallbackError, match=r"exec"):
                call(x)
        assert x[0] == 0.0

    def test_errors_that_shall_raise(self, wrap):
        call = wrap(made(FUSED))
        with np.errstate(all="raise"), pytest.raises(ufuse.FallbackError, match="errstate"):
            call(X)
        assert call(X) > 0

    def test_the_users_exceptions_are_the_users(self, wrap):
        call = wrap(made(RAISES))
        with pytest.raises(KeyError, match="the user"):
            call(X)

    def test_the_traceback_shows_no_file_of_ours(self, wrap):
        with pytest.raises(ufuse.FallbackError) as caught:
            wrap(made(SORTS))(X)
        files = {str(entry.path) for entry in caught.traceback}
        ours = os.path.dirname(ufuse.__file__)
        assert not any(file.startswith(ours) for file in files), files


class TestStrictFunctions:
    def test_bound_arguments_and_methods(self):
        class Model:
            @ufuse.jit(strict=True)
            def step(self, x):
                return np.sort(x)

        with pytest.raises(ufuse.FallbackError):
            Model().step(X)
        with pytest.raises(ufuse.FallbackError):
            strict(functools.partial(made(SORTS), X))()

    def test_later_calls_are_replayed(self):
        f = strict(made(FUSED))
        for _ in range(5):
            f(X)
        assert f.stats().replayed == 4

    def test_inside_other_calls_it_is_theirs(self):
        inner = strict(made(SORTS))
        outer = ufuse.jit(lambda x: inner(x) + 1)
        assert outer(X).tobytes() == (np.sort(X * 2) + 1).tobytes()

    def test_names_that_are_defined_later(self):
        space = {**SPACE, "later": None}
        f = strict(function_of("def f(x):\n    return later(x)\n", space))
        space["later"] = made(FUSED)
        assert f(X) == made(FUSED)(X)
        space["later"] = np.sort
        with pytest.raises(ufuse.FallbackError):
            f(X)

    def test_the_interpreter_is_a_fallback(self):
        with ufuse._core.backend("interpreted"), pytest.raises(ufuse.FallbackError):
            strict(made(FUSED))(X)

    def test_it_is_kept_by_pickles_and_copies(self):
        f = pickle.loads(pickle.dumps(strict(np.sort)))
        with pytest.raises(ufuse.FallbackError):
            f(X)


class TestRecompiles:
    def test_a_new_dtype(self):
        f = ufuse.jit(made(FUSED))
        with ufuse.stance("fail_on_recompile"):
            f(X)
            f(X)
            with pytest.raises(ufuse.RecompileError, match=r"f\(float32\[1000\]\) needs new loops"):
                f(X.astype("f4"))
            f(X.astype("f4"))

    def test_plain_functions(self):
        f = ufuse.jit(made("def f(x):\n    return eval('x')\n"))
        with ufuse.stance("fail_on_recompile"):
            assert f(X) is X


class TestStances:
    def test_plain(self):
        f = ufuse.jit(made(FUSED))
        with ufuse.stance("plain"):
            f(X)
        assert f.stats().traced == 0

    def test_the_innermost_counts(self):
        f = ufuse.jit(made(SORTS))
        with ufuse.stance("fail_on_fallback"):
            with ufuse.stance("default"):
                f(X)
            with ufuse.disabled():
                f(X)
            with pytest.raises(ufuse.FallbackError):
                f(X)
        f(X)

    def test_other_threads_have_their_own(self):
        f, given = ufuse.jit(made(SORTS)), []
        with ufuse.stance("fail_on_fallback"):
            thread = threading.Thread(target=lambda: given.append(f(X)))
            thread.start()
            thread.join()
        assert len(given) == 1

    def test_an_unknown_name(self):
        with pytest.raises(ValueError, match=r"a stance is one of default, plain, .* not 'fast'"):
            ufuse.stance("fast")
