"""What happens in a call of a jitted function?

``Function`` is what ``ufuse.jit`` makes. A call either runs the function's twin with lazy arrays
and computes what is due at the end, or runs the plain function; which of the two is decided before
any user code runs, and user code runs once.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import time
import types
from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    overload,
)

from . import _core, pickling
from ._core import Jitted, is_a
from .source import carried
from .source.text import names_used
from .tracing import callees, loops, tracebacks, twin
from .tracing.parameters import Parameters, parameters
from .tracing.run import Options, may_warn_late, traced
from .tracing.watchers import stances, watchers

if TYPE_CHECKING:
    from .tools.explain import Explanation
    from .tools.stats import Stats

# How often the recordings of a function are made again because a global name or a variable of an
# enclosing function has another value. Where one changes more often, Python runs at each call.
_MAX_RENEWALS = 16
# While the interpreter ends (a ``__del__`` that calls a jitted function) nothing can be imported.
_is_ending = sys.is_finalizing


# Functions whose calls give a coroutine or a generator in the place of a result.
_WITHOUT_RESULT = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)
# What jitted functions have beside what the original has.
_METHODS = ("__wrapped__", "explain", "source", "stats", "warmup")
_OF_CODE = ("__code__", "__defaults__", "__kwdefaults__")
_OF_ORIGINAL = (*functools.WRAPPER_ASSIGNMENTS, "__type_params__")


P = ParamSpec("P")
R = TypeVar("R")
_Q = ParamSpec("_Q")
_Self = TypeVar("_Self")
_Code = tuple[types.FunctionType, types.CodeType, Any, Any]


class Plan(NamedTuple):
    """How a call of a function would run if it were made now."""

    callee: Callable[..., Any]  # the twin, or the function itself
    reason: str | None  # why it runs as plain NumPy
    detail: str
    line: int
    pure: bool


def _surroundings(function: types.FunctionType) -> list[tuple[Any, str, Any, bool]]:
    """Guards of all that the scan of a function looks at beside its code: what its names stand for.

    Of data the type counts, whatever `==` means to it.
    """
    real = function.__globals__
    rows: list[tuple[Any, str, Any]] = [
        (real, name, real.get(name, ...)) for name in names_used(function.__code__)
    ]
    rows += twin.free_variables(function)
    return [
        (where, name, value, False)
        if value is ... or callees.is_code(value)
        else (where, name, type(value), True)
        for where, name, value in rows
    ]


def _codes_of(made: twin.Twin) -> list[_Code]:
    """The functions that a twin stands for, with their code and defaults."""
    return [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in made.functions(set())]


def _unbound(function: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A callable as a plain function and the arguments bound to it."""
    args: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while True:
        if is_a(function, functools.partial):
            args, keywords = function.args + args, {**function.keywords, **keywords}
            function = function.func
        elif is_a(function, types.MethodType):
            args = (function.__self__, *args)
            function = function.__func__
        elif is_a(function, Function):
            function = function.__wrapped__
        elif is_a(vars(type(function)).get("__call__"), types.FunctionType):
            args = (function, *args)
            function = vars(type(function))["__call__"]
        else:
            return function, args, keywords


@_core.call_as_base
class Function(Jitted, Generic[P, R]):
    """A function that runs as fused native loops; made by ``ufuse.jit``.

    It has the name, documentation, annotations and signature of the original, which is
    ``__wrapped__``. It is a descriptor, so it works as a method. It is pickled and copied as a
    plain function is, and a coroutine or generator function where the original is one. For type
    checkers ``Function[[A, B], R]`` takes an ``A`` and a ``B`` and returns an ``R``.
    """

    # ``__dict__`` has what the original and users have set: ``functools.wraps`` copies all of it.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_args",
        "_dispatcher",
        "_function",
        "_is_joined",
        "_is_verified",
        "_keywords",
        "_options",
        "_parameters",
        "_plan",
        "_renewals",
        "_texts",
        "_trace",
        "_untraced",
        "_verifier",
        "_ways",
    )

    def __init__(self, function: Callable[P, R], options: Options) -> None:
        if not callable(function):
            raise TypeError(f"ufuse.jit needs a callable, not {type(function).__name__!r}")
        if is_a(function, type):
            # What it returned would be no class: isinstance and inheritance would fail elsewhere.
            raise TypeError(
                f"ufuse.jit needs a function, not the class {function.__name__!r}; "
                "decorate its methods"
            )
        if is_a(function, Function):
            inner: Callable[..., Any] = function.__wrapped__
            function = inner
        # Attributes that somebody has set on the function come along, but for those that are set
        # below. An object of another class keeps its own: they are its state.
        if is_a(function, types.FunctionType):
            self.__dict__.update(function.__dict__)
        if sys.version_info < (3, 14):
            self.__annotations__: dict[str, Any] = {}  # not the class's
        for name in _OF_ORIGINAL:
            if hasattr(function, name):
                self.__dict__[name] = getattr(function, name)
        self.__wrapped__: Callable[P, R] = function
        self._options = options
        self._verifier: Any = None  # of calls that are or were compared with plain NumPy
        self._is_verified = False  # calls are compared now
        self._plan: tuple[Any, Plan] | None = None
        # Where plain NumPy answers all calls, for a reason: the function, and what that rests on.
        self._untraced: _core.Untraced | None = None
        # Answers calls: with a recording, without Python, or by the plain function where that is
        # measured to be faster. None where plain NumPy answers all of them.
        self._dispatcher: _core.Dispatcher | None = None
        # What answers calls without a look at this object. None: ``answering`` finds out.
        self._at_once: _core.Dispatcher | _core.Untraced | None = None
        self._parameters: Parameters | None = None  # numbers that may differ in replays
        self._renewals = 0  # how often a guard did not hold any more
        self._function, self._args, self._keywords = _unbound(function)
        self._is_joined = self._function is not function  # it has arguments to add to a call's
        # What a call with the same arguments calls, for loops that take its text in.
        self._plain = None if self._is_joined else self._function
        self._texts: list[Any] = []  # source that came along from another process
        # By each name that it has had: the ways on which picklers find it.
        self._ways: dict[tuple[str, str], pickling.Way] = {}
        # What a dispatcher calls where it has no recording.
        self._trace = functools.partial(_core.call_late, self.way)
        if is_a(self._function, types.FunctionType):
            callees.own(self._function)
            if any(is_such(function) for is_such in _WITHOUT_RESULT):
                # By these `inspect` knows what it is. Functions that are traced have none of them,
                # for SciPy's wrappers of Fortran take an object with `__code__` for a method.
                for name in _OF_CODE:
                    self.__dict__[name] = getattr(self._function, name)
                self.__dict__.setdefault("__name__", self._function.__name__)
        if options.verify:
            self._verify(options.verify)

    if sys.version_info >= (3, 14):

        def __getattr__(self, name: str) -> Any:
            """The annotations: those of a function are computed when they are asked for."""
            if name != "__annotations__":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            found = self.__dict__[name] = getattr(self.__wrapped__, name, {})
            return found

    def __reduce__(self) -> Any:
        return pickling.reduced(self)

    def __getstate__(self) -> Any:
        options = {
            name: value
            for name, value in self._options._asdict().items()
            if value != Options._field_defaults[name]
        }
        own = pickling.attributes(self, _own_names())
        return options, self.__wrapped__, own, pickling.texts_of(self)

    def __setstate__(self, state: Any) -> None:
        options, original, own, texts = state
        Function.__init__(self, original, Options(**options))
        self.__dict__.update(own)
        self._texts = carried.received(texts)

    def __copy__(self) -> Function:
        return self._like(copy.copy(self.__wrapped__), copy.copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        return self._like(
            copy.deepcopy(self.__wrapped__, memo), lambda own: copy.deepcopy(own, memo)
        )

    def _like(self, original: Any, copied: Callable[[Any], Any]) -> Function:
        """A jitted copy of the original; itself where the original, a function, is its own copy."""
        if original is self.__wrapped__:
            return self
        made = Jitted.__new__(type(self))
        options, _, own, _ = self.__getstate__()
        made.__setstate__((options, original, copied(own), ()))
        return made

    @property
    def __ufuse_way__(self) -> pickling.Way:
        """Where picklers find what is pickled of this function."""
        return pickling.way_to(self)

    def __dir__(self) -> list[str]:
        users = (name for name in vars(self) if not name.startswith("_"))
        names = {*dir(self.__wrapped__), *_METHODS, *users}
        return [name for name in names if hasattr(self, name)]

    def __repr__(self) -> str:
        return f"<ufuse.jit of {self.__wrapped__!r}>"

    def _inner(self) -> Callable[..., Any]:
        """What stands for this function inside another traced function."""
        plan = self.plan()
        if plan.reason is not None:
            return callees.caller(self.__wrapped__, plan.reason, pure=False)
        if self._args or self._keywords:
            return functools.partial(plan.callee, *self._args, **self._keywords)
        return plan.callee

    def plan(self) -> Plan:
        """How a call made now would run. Looks at names again where they have changed."""
        function = self._function
        known = self._plan
        if (
            self._dispatcher is not None
            and self._renewals < _MAX_RENEWALS
            and self._dispatcher.is_stale
        ):
            self._renewals += 1
            known = None
        if known is not None:
            if self._untraced is not None:
                current = self._untraced.stands
            else:
                current = known[0] is None or known[0].up_to_date(set())
            if current:
                return known[1]
        if _is_ending():
            return Plan(function, "ending", "", 0, False)
        made: Any = None
        untraced = None
        if is_a(function, types.FunctionType):
            rests_on = _surroundings(function)
            found = twin.scanned(function)
            if found.reason == "internal_error" and self._options.debug:
                raise _core.InternalError(found.detail)
            if found.reason is not None:
                untraced = _core.Untraced(function, rests_on, self._trace)
                plan = Plan(function, found.reason, found.detail, found.line, False)
            else:
                made = twin.twin_of(function)
                plan = Plan(made.function, None, "", 0, found.pure)
        else:
            plan = Plan(callees.callee(function), None, "", 0, False)
        # Other threads may be here as well, so nothing is seen half made.
        dispatcher, numbers = None, None
        codes = _codes_of(made) if made is not None else []
        guards = made.guards(set()) if plan.pure else None
        if plan.reason is None and guards is None:
            dispatcher = _core.Dispatcher(
                self._trace, None, self._alternative(), before=self._dispatcher, codes=codes
            )
        elif guards is not None:
            numbers = parameters(function)
            dispatcher = _core.Dispatcher(
                self._trace,
                guards,
                self._alternative(),
                numbers,
                self._observed,
                self._dispatcher,
                codes,
            )
        self._parameters = numbers
        self._dispatcher, self._untraced = dispatcher, untraced
        asks = self._is_joined or self._options.strict or self._is_verified
        self._at_once = None if asks else dispatcher or untraced
        self._plan = (made, plan)
        return plan

    def _observed(self, functions: list[Any]) -> tuple[list[twin.Guard], list[_Code]] | None:
        """Guards and codes of functions that a recorded call has run.

        None where one of them is not pure.

        Most of them are known already, because names lead to them. To methods of objects no name
        leads, so they are found only when a call has run them.
        """
        known = {id(function) for function in twin.twin_of(self._function).functions(set())}
        rows: list[twin.Guard] = []
        codes: list[_Code] = []
        for given in functions:
            function = given._function if is_a(given, Function) else given
            is_joined = is_a(given, Function) and given._is_joined
            if is_joined or not is_a(function, types.FunctionType):
                return None
            if id(function) in known or callees.is_stable(function):
                continue
            made = twin.twin_of(function)
            more = made.guards(set())
            if more is None:
                return None
            rows += more
            codes += _codes_of(made)
        return rows, codes

    def _alternative(self) -> Callable[[], Callable[..., Any]] | None:
        """Gives the plain function; None where it may not answer calls, for its bits differ."""
        options = self._options
        exact = options.numerics == "exact" and not options.debug and not options.strict
        if not exact or self._is_verified:
            return None
        return functools.partial(loops.plain, self._function)

    def _verify(self, calls: float, tell: Callable[[Any], None] | None = None) -> None:
        """Compare the next calls with plain NumPy; ``verify.Verifier`` says how."""
        from .tools import verify

        self._verifier = verify.Verifier(self, calls, tell or verify.complain())
        self._is_verified = True
        self._forget_plan()

    def _end_verification(self) -> None:
        """Compare no more calls: from now on they are answered as if nobody had asked for it."""
        if self._is_verified:
            self._is_verified = False
            self._forget_plan()

    def _forget_plan(self) -> None:
        self._plan = self._dispatcher = self._untraced = self._at_once = None

    def joined(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, with those that a partial or a method brings along."""
        # What a partial holds can be changed, so it is asked each time.
        given = self.__wrapped__
        if type(given) is functools.partial and given.func is self._function:
            return given.args + args, {**given.keywords, **kwargs}
        function, self._args, self._keywords = _unbound(self.__wrapped__)
        if function is not self._function:
            self._function = function
            self._forget_plan()
        return self._args + args, {**self._keywords, **kwargs}

    if TYPE_CHECKING:  # in C: a Python frame would be counted by warnings and ``sys._getframe``

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Function[P, R]: ...

        @overload
        def __get__(
            self: Function[Concatenate[_Self, _Q], R], instance: _Self, owner: type | None = None
        ) -> Callable[_Q, R]: ...

        def __get__(self, instance: Any, owner: type | None = None) -> Any: ...

    def answering(self) -> Callable[..., Any]:
        """What answers a call that is made now."""
        answer: Callable[..., Any]
        answer = self._verifier.answering() if self._is_verified else self.unverified()
        return answer

    def unverified(self) -> Callable[..., Any]:
        """What answers a call that is made now and is not compared with plain NumPy."""
        if watchers and not _is_ending() and not _core.session_active():
            return self._function if stances.now == "plain" else self._watched
        if self._plan is None:
            self.plan()
        untraced = None if self._options.strict else self._untraced
        return self._dispatcher or untraced or self.way()

    def way(self) -> Callable[..., Any]:
        """What runs a call through Python, whether or not it has been recorded."""
        plan = self.plan()
        if plan.reason is not None or _is_ending() or not may_warn_late():
            if self._options.strict and not _is_ending() and not _core.session_active():
                self._strictness().refuse(self)
            # Plain NumPy; inside another traced call it gets real arrays.
            reason = plan.reason or "error_state"
            return functools.partial(_core.call_numpy, self._function, reason, False)
        if _core.session_active():
            return plan.callee
        call = traced(plan.callee, self._options, self._parameters)
        return functools.partial(self._checked, call) if self._options.strict else call

    def _checked(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        with tracebacks.UsersTraceback():
            self._strictness().check(self)
        return result

    def _strictness(self) -> Any:
        from .tools import stance

        return stance

    def _watched(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call of which the logs or a profile are told."""
        from .tools import explain, logs

        # `plan` looks at code and names again; the dispatcher is the one that holds afterwards.
        reason = explain.plan_reason(self.plan())
        dispatcher = self._dispatcher
        before = dispatcher.counts if dispatcher is not None else (0, 0, 0)
        start = time.perf_counter_ns()
        try:
            if stances.now != "default":
                return self._strictness().answer(self, stances.now, *args, **kwargs)
            return (self.way() if dispatcher is None else dispatcher)(*args, **kwargs)
        finally:
            end = time.perf_counter_ns()
            mode = "plain" if reason else "traced"
            replayed, traced, _ = dispatcher.counts if dispatcher is not None else (0, 1, 0)
            if replayed != before[0]:
                mode = "replayed"
            elif traced == before[1]:
                mode, reason = "plain", explain.sentences()["faster_plain"]
            elif not reason and not may_warn_late():
                mode, reason = "plain", explain.sentences()["error_state"]
            seen = logs.Seen(self._name(), mode, reason, start, end, args, kwargs, self._function)
            for watcher in list(watchers):
                watcher(seen)

    def _name(self) -> str:
        """What the function is called in explanations, logs and profiles."""
        if is_a(self.__wrapped__, functools.partial):
            inner = getattr(self._function, "__qualname__", type(self._function).__qualname__)
            return f"partial of {inner}"
        return str(getattr(self, "__qualname__", type(self.__wrapped__).__qualname__))

    def explain(self, /, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """Run once on copies of the arguments and say what happened.

        Parameters
        ----------
        *args, **kwargs
            Arguments of a call; arrays in them are not touched. Of a method the first one is the
            object: ``Model.apply.explain(model, x)``.

        Returns
        -------
        ufuse.tools.explain.Explanation
            Mode, fused groups, what interrupted them and why, memory traffic and times; ``print``
            shows it as text, a notebook as a table.

        Raises
        ------
        Exception
            What the function itself raises for these arguments.

        Examples
        --------
        >>> import numpy as np, ufuse
        >>> f = ufuse.jit(lambda x: np.sort(x * 2 + 1))
        >>> found = f.explain(np.arange(5.0))
        >>> found.mode, [group.ops for group in found.groups]
        ('replayed', [('multiply', 'add')])
        >>> [note.detail for note in found.notes]
        ['sort']
        """
        with tracebacks.UsersTraceback():
            return self._explained("explain", args, kwargs)

    def _explained(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
        from .tools import explain

        try:
            return explain.explain(self, args, kwargs)
        except TypeError as error:
            self._hint(error, method, args, kwargs)
            raise

    def _hint(
        self, error: TypeError, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Note on ``model.apply.explain(x)`` that such a call needs the object as well."""
        owner, _, name = getattr(self._function, "__qualname__", "").rpartition(".")
        if not owner or owner.endswith("<locals>"):
            return
        try:
            inspect.signature(self._function).bind(*args, **kwargs)
        except TypeError:
            error.add_note(f"A method needs its object here: {owner}.{name}.{method}(self, ...)")

    def source(self, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """The C++ text that a call with such arguments runs.

        Parameters
        ----------
        *args, **kwargs
            As for ``explain``.

        Returns
        -------
        str
            One text per fused group; empty where nothing was compiled.

        Examples
        --------
        >>> import numpy as np, ufuse
        >>> print(ufuse.jit(np.sin).source(np.arange(5.0)).splitlines()[0])
        // sin
        """
        with tracebacks.UsersTraceback():
            return self._explained("source", args, kwargs).source

    def stats(self) -> Stats:
        """How calls have been answered so far, and what that has cost beside plain NumPy.

        Returns
        -------
        ufuse.tools.stats.Stats
            Counts of calls, seconds, and the times by which ways were chosen; ``print`` shows it
            as text. Of a function that is never traced nothing is counted.

        Examples
        --------
        >>> import numpy as np, ufuse
        >>> f = ufuse.jit(lambda x: x + 1)
        >>> for _ in range(3):
        ...     y = f(np.arange(5.0))
        >>> found = f.stats()
        >>> found.traced, found.replayed + found.plain
        (1, 2)
        """
        from .tools import stats

        return stats.of(self._dispatcher)

    def warmup(self, /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Record a call with such arguments, and wait until its loops are compiled.

        The function runs once, on copies of the arguments. Later calls find everything ready.

        Parameters
        ----------
        *args, **kwargs
            As for ``explain``.

        Raises
        ------
        Exception
            What the function itself raises for these arguments.

        Examples
        --------
        >>> import numpy as np, ufuse
        >>> f = ufuse.jit(lambda x: np.sqrt(x + 1))
        >>> f.warmup(np.arange(5.0))
        >>> f.stats().building
        0
        """
        with tracebacks.UsersTraceback():
            self._explained("warmup", args, kwargs)


@functools.cache
def _own_names() -> frozenset[str]:
    """The attributes of a jitted function that are neither the original's nor the user's."""
    names = {*dir(Function), *_OF_CODE, "__wrapped__"}
    return frozenset(names - set(_OF_ORIGINAL))
