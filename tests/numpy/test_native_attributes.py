"""Do native loops assign attributes as Python does, wherever they exit and whoever looks at them?"""

import _thread
import dataclasses
import gc
import itertools
import signal
import threading
import time
import types
import weakref

import numpy as np
import pytest
import ufuse
from same import same
from test_native_loops import alike, outcome, told
from ufuse.source import heads
from ufuse.tracing.loops import looped

BACKENDS = ["compiled"]


class State(types.SimpleNamespace):
    """An object whose attributes are compared."""

    def advance(self, dt):
        self.v -= dt * self.force()
        self.x += dt * self.v
        self.n += 1
        return self.x

    def force(self):
        return self.x * self.k + 0.1 * self.v

    def fail_late(self, i):
        self.n += 1
        self.big = self.big * 10 + i  # more than 64 bits at last
        return self.n

    def divide(self, d):
        self.n += 1
        self.x = self.x / d
        return self.x

    def turn(self, i):
        self.a, self.b = self.b + i, self.a
        return self.a - self.b

    def bump(self):
        self.n += 10
        return self.n

    def diffuse(self):
        self.u[1:-1] += 0.2 * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
        self.n += 1

    def spike(self, top):
        if self.v > top:
            self.v = -0.25
            self.n += 1

    def smooth(self, by):
        self.u[1:] = self.u[:-1] + by
        self.w += self.u
        return self.w[0] * 0.5

    def shift(self):
        self.u = self.u * 0.5 + self.v
        return self.u[0]

    def sweep(self, k):
        for i in range(1, len(self.u)):
            self.u[i] -= self.u[i - 1] * 0.25
            self.n += i
            if self.u[i] > 5.0:
                self.u[i] /= self.u[i] - self.u[i]  # a warning in Python
        self.k = k


def state(**more):
    known = {"x": 1.0, "v": 0.5, "k": 2.0, "n": 0, "big": 3, "a": 1, "b": 2}
    return State(**known | {"u": np.linspace(0.0, 1.0, 9), "w": np.arange(9.0)} | more)


def in_the_loop(s, n):
    for _i in range(n):
        f = -s.x * s.k
        s.v += 0.1 * f
        s.x += 0.1 * s.v
        s.n += 1
    return s.x, f


def in_a_method(s, n):
    for _i in range(n):
        s.advance(0.1)
    return s.n


def in_an_expression(s, n):
    t = 0.0
    for _i in range(n):
        t += s.n + s.bump() * 100 + s.n + s.bump()
    return t


def before_what_overflows(s, n):
    for i in range(n):
        s.fail_late(i)
        s.k = s.k + s.fail_late(i) * 0.5
    return s.big


def before_what_raises(s, n):
    for i in range(n):
        s.k += s.divide(5.0 - i)
        s.b = i
    return s.k


def swapped(s, n):
    for i in range(n):
        s.a, s.b = s.b, s.a + i
        s.turn(i)
        s.x = s.v = s.x * 0.5
    return s.a, s.b


def while_an_attribute(s, n):
    while s.n < n:
        s.n += 1
        if s.n == 4:
            continue
        s.x *= 1.5
        if s.x > 20:
            break
    else:
        s.b = -1
    return s.x


def while_a_method(s, n):
    while s.bump() < 10 * n:
        s.x += s.n
    return s.x


def if_a_method(s, n):
    for i in range(n):
        if s.bump() % 3 == 0:
            s.a += i
        elif s.bump() > 50 and s.turn(i) > 0:
            s.b -= i
        if not s.bump() < 10_000:
            raise ValueError
    return s.a


def returned(s, n):
    for _i in range(n):
        s.x *= 2
        if s.x > 50:
            return s.bump() + s.n
    return None


def nested(s, n):
    for i in range(n):
        for j in range(i):
            s.n += j
            if s.n > 40:
                s.a += 1
                break
            s.x += s.u[j % 9]
        else:
            s.b += s.n
        s.v = s.x - i
    return i


def to_an_attribute(s, n):
    total = 0
    for s.n in range(n):
        total += s.n
        for s.x, s.v in ((1.5, 2), (0.5, 3)):
            total += s.x * s.v
    return total


def arrays(s, n):
    first = s.u
    for i in range(n):
        before = s.u
        s.u = s.u * 0.5 + s.w
        s.w += before
        s.u[0] = i
        s.x = s.u[1] + before[2]
    return first, before, s.u


def arrays_shared(s, n):
    for _i in range(n):
        s.w = s.u
        s.u = s.u + 1.0
        s.w[0] += 3.0
    return s.w is s.u


def arrays_in_methods(s, n):
    for k in range(n):
        s.diffuse()
        s.sweep(k)
    return s.u.sum()


def arrays_in_several_calls(s, n):
    for i in range(n):
        s.x = s.smooth(i) + s.smooth(0.5) / (s.u[3] - i)
        s.smooth(s.smooth(s.x))
    return s.x


def arrays_made_in_methods(s, n):
    t = 0.0
    for _i in range(n):
        t += s.shift() + s.u[1]
        s.u[2] = t
    return t


def views(s, n):
    for i in range(n):
        s.w = s.u[1:]
        s.w[0] = i
    return s.w


def by_other_types(s, n):
    for i in range(n):
        s.n = s.n + 0.5
        s.a = s.a * s.u[i % 9]
    return s.n


def by_a_type_of_some_rounds(s, n):
    for i in range(n):
        s.n += 1
        if i % 5 == 3:
            s.k = np.float32(s.k)
        elif i == 9:
            s.k = None
    return s.n


def of_numpy(s, n):
    for i in range(n):
        s.f = s.f * 1.5 + s.u[i % 9]
        s.c = s.c * (0.5 + 1j)
        s.on = s.f > 3
        s.g += s.g
    return s.on


def of_both(s, n):
    for i in range(n):
        s.v += 0.5 * (s.u[i % 9] - s.v)
        s.spike(s.u[4])
        if s.v > 0.2:
            s.x = s.x + s.w[i % 9]
            s.n = s.n + 1
        else:
            s.x = 1.0
            s.n = s.m[i % 9]
        s.k = s.v
    return s.v, s.x, s.n


def the_same_number_of_both(s, n):
    for i in range(n):
        if i % 3 == 0:
            s.x = s.w[1]
        elif i % 3 == 1:
            s.x = 1.0
    return s.x


def unchanged(s, n):
    for i in range(n):
        s.x = s.x
        if i < 0:
            s.a = 7
        s.u = s.u
    return s.x


def helped(s, n):
    def add(o, by):
        o.n += by
        return o.n

    for i in range(n):
        add(s, i)
        s.k = add(s, 2) + add(by=1, o=s)
    return s.n


def part(s, n):
    for i in range(n):
        s.inner.value += s.x
        s.x = s.inner.value - i
    return s.inner.value


class Slots:
    __slots__ = ("u", "x")

    def __init__(self):
        self.x, self.u = 1.0, np.arange(3.0)

    def __repr__(self):
        return f"Slots({self.x!r}, {self.u!r})"

    def __deepcopy__(self, memo):
        return Slots()


def of_slots(s, n):
    for _i in range(n):
        s.x += s.u[1]
        s.u = s.u * 2.0
    return s.x


class Private:
    def __init__(self):
        self.__value = 2.0
        self.x = 0.0

    def __repr__(self):
        return repr(vars(self))

    def run(self, n):
        for i in range(n):
            self.__value += i
            self.x += self.__value
        return self.x


HERE = State(x=1.0, n=0)


def of_a_global(s, n):
    for i in range(n):
        HERE.x += i * 0.5
        HERE.n += 1
    s.x, HERE.x, HERE.n = HERE.x, 1.0, 0
    return s.x


CASES = [
    *(in_the_loop, in_a_method, in_an_expression, before_what_overflows, before_what_raises),
    *(swapped, while_an_attribute, while_a_method, if_a_method, returned, nested),
    *(to_an_attribute, arrays, arrays_shared, arrays_in_methods, arrays_in_several_calls),
    *(arrays_made_in_methods, views),
    *(
        by_other_types,
        of_numpy,
        of_both,
        the_same_number_of_both,
        unchanged,
        helped,
        part,
        of_slots,
        of_a_global,
    ),
]


def state_for(function):
    if function is of_slots:
        return Slots()
    made = state(
        m=np.arange(9),
        f=np.float64(2.0),
        c=1j,
        on=np.bool_(False),
        g=np.int16(3),
        inner=State(value=2.0),
    )
    return made


def check(function, make, *args, native=True, most=60):
    """What a call does to the object that is made for it, and gives."""

    def called(f):
        def call(*args):
            s = make()
            first = {k: v for k, v in attributes_of(s).items() if isinstance(v, np.ndarray)}
            result = error = None
            try:
                result = f(s, *args)
            except Exception as raised:
                error = type(raised), str(raised)
            kept = [attributes_of(s)[k] is v for k, v in first.items()]
            return result, error, vars_of(s), kept, list(first.values())

        return call

    expected = outcome(called(function), args)
    made = looped(function)
    if made is None:
        assert native is not True
        return
    loops = heads.loops_of(made.__code__)
    with told(eager=True):
        alike(outcome(called(made), args), expected)
    facts = [each.facts for each in loops]
    assert not any("internal" in each["why_not"] for each in facts), facts
    if native:
        assert any(each["versions"] for each in facts), [each["why_not"] for each in facts]
    elif native is False:
        assert not any(v["native_ns"] for each in facts for v in each["versions"]), facts
    for statements in range(1, most):
        with told(eager=True, exits_after=statements):
            alike(outcome(called(made), args), expected)


def attributes_of(s):
    return {"x": s.x, "u": s.u} if isinstance(s, Slots) else vars(s)


def vars_of(s):
    """Attributes in their order, as lists and tuples, which are compared item by item."""
    found = attributes_of(s).items()
    return [(name, vars_of(value) if isinstance(value, State) else value) for name, value in found]


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_as_python_does(function):
    check(function, lambda: state_for(function), 5)
    check(function, lambda: state_for(function), 12, native=None)
    check(function, lambda: state_for(function), 0, native=None, most=2)


def test_attributes_of_several_types_are_left_to_python():
    check(by_a_type_of_some_rounds, state, 12, native=None)


def test_private_names_are_left_to_python():
    check(Private.run, Private, 10, native=False, most=2)


class WithDefault:
    x, n = 1.0, 0


class WithProperty:
    def __init__(self):
        self._x, self.n = 1.0, 0

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self._x = value * 2


class WithHook:
    def __init__(self):
        self.x, self.n = 1.0, 0

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        object.__setattr__(self, "seen", name)


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: float = 1.0
    n: int = 0


class WithText:
    def __init__(self):
        self.x, self.n = "a", 0


def stepped(s, n):
    for i in range(n):
        s.x += s.x
        s.n = i
    return s.x


@pytest.mark.parametrize("kind", [WithDefault, WithProperty, WithHook, Frozen, WithText])
def test_where_code_runs_python_assigns(kind):
    check(stepped, kind, 8, native=False, most=2)


def test_a_class_gets_a_property_later():
    class Plain:
        def __init__(self):
            self.x, self.n = 1.0, 0

    made = looped(stepped)
    with told(eager=True):
        assert made(Plain(), 5) == 32.0
        seen = []
        Plain.n = property(lambda self: 0, lambda self, value: seen.append(value))
        one = Plain.__new__(Plain)
        one.x = 1.0
        assert made(one, 5) == 32.0
    assert seen == [0, 1, 2, 3, 4]


def test_an_instance_gets_a_method_of_another():
    def run(s, n):
        for _i in range(n):
            s.advance(0.1)
            s.x += 1
        return s.x

    def make():
        one, other = state(), state(x=3.0)
        one.advance = other.advance
        one.other = other
        return one

    def own():
        one = state()
        one.other = state()
        return one

    expected = [vars_of(each) for each in (own(), make())]
    made = looped(run)
    for make_one in (own, make, own):
        for f, eager in ((run, False), (made, True)):
            s = make_one()
            with told(eager=eager):
                f(s, 6)
            found = s.x, s.n, s.other.x, s.other.n
            if f is run:
                expected = found
        assert found == expected


def both(s, t, n):
    for i in range(n):
        s.x += 1.0
        t.x *= 1.5
        s.n, t.n = t.n + i, s.n
    return s.x, t.x, s.n


@pytest.mark.parametrize("first", ["apart", "same"])
def test_two_names_for_one_object(first):
    made = looped(both)
    for turn in itertools.islice(itertools.cycle(["apart", "same"]), first == "same", 5):
        found = []
        for f, eager in ((both, False), (made, True)):
            s, t = state(), state(b=5)
            with told(eager=eager):
                result = f(s, s if turn == "same" else t, 7)
            found.append((result, vars_of(s), vars_of(t)))
        alike(found[1], found[0])


def test_an_attribute_goes_away():
    def ends(s, n):
        for i in range(n):
            s.x += 1
            if i == 5:
                del s.n
            if i == 8:
                s.n = 3.5
        return s.x

    def missing(s, n):
        for i in range(n):
            s.x += 1
            s.n += i
            if i == 5:
                raise KeyError(s.n)

    check(ends, state, 10, native=None)
    check(missing, state, 10)
    check(missing, lambda: State(x=1.0), 10, native=None)


def test_what_is_dropped_dies():
    class Mine(np.ndarray):
        pass

    deaths = []

    class Watched(State):
        def __del__(self):
            deaths.append(self.n)

    def run(s, n):
        for _i in range(n):
            s.n += 1
            s.u = s.u + 1.0
        return s.n

    made = looped(run)
    with told(eager=True):
        assert made(Watched(n=0, u=np.zeros(3)), 9) == 9
    assert deaths == [9]


def test_through_jit():
    class Oscillator:
        def __init__(self):
            self.x, self.v, self.t, self.u = 1.0, 0.0, 0.0, np.zeros(5)

        def step(self, dt):
            self.v += dt * (-self.x - 0.1 * self.v)
            self.x += dt * self.v
            self.u[1:] = self.u[:-1] + self.x

        def run(self, n, dt):
            for _ in range(n):
                self.step(dt)
                self.t += dt
            return self.x

    native = ufuse.jit(Oscillator.run)
    ours, theirs = Oscillator(), Oscillator()
    for _ in range(30):
        assert native(ours, 500, 0.01) == Oscillator.run(theirs, 500, 0.01)
        assert (ours.x, ours.v, ours.t) == (theirs.x, theirs.v, theirs.t)
        same(ours.u, theirs.u)


# ---- Whoever looks meanwhile ----


@pytest.fixture
def guarded():
    guard = threading.Timer(60, _thread.interrupt_main)
    guard.start()
    yield state(running=True, seen=[])
    guard.cancel()


def counting(s):
    while s.running:
        s.n += 1
        s.x = s.n * 0.5
    return s.n


def counting_inside(s):
    for _i in range(3):
        while s.running:
            s.bump()
            s.u = s.w
    return s.n


@pytest.mark.parametrize("function", [counting, counting_inside], ids=lambda f: f.__name__)
@pytest.mark.parametrize("by", ["thread", "handler"])
def test_others_see_how_far_it_is(function, by, guarded):
    def look(*_):
        guarded.seen.append(guarded.n)
        guarded.running = len(guarded.seen) < 5

    made = looped(function)
    if by == "handler":
        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.05)
        try:
            with told(eager=True):
                n = made(guarded)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    else:

        def looks():
            while guarded.running:
                time.sleep(0.05)
                look()

        other = threading.Thread(target=looks)
        other.start()
        with told(eager=True):
            n = made(guarded)
        other.join()
    assert guarded.n == n
    assert guarded.seen == sorted(set(guarded.seen)), "it stood still"
    facts = [loop.facts for loop in heads.loops_of(made.__code__)]
    assert any(version["native_ns"] > 0 for each in facts for version in each["versions"])


def test_what_others_assign_stays(guarded):
    """A handler sets the counter back: the loop goes on from there."""

    def back(*_):
        guarded.seen.append(guarded.n)
        guarded.n = 0
        guarded.running = len(guarded.seen) < 5

    def counted(s):
        rounds = 0
        while s.running:
            s.n += 1
            rounds += 1
        return rounds

    before = signal.signal(signal.SIGALRM, back)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.05)
    try:
        with told(eager=True):
            rounds = looped(counted)(guarded)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rounds == guarded.n + sum(guarded.seen)


def total_of_its_own_class():
    class Local:
        k = 2.0

        def __init__(self):
            self.s = 0.0

        def total(self, n):
            for i in range(n):
                self.s += i * self.k
            return self.s

    made = looped(Local.total)
    with told(eager=True):
        alike([made(Local(), 20_000)], [Local.total(Local(), 20_000)])
    [loop] = heads.loops_of(made.__code__)
    return loop, weakref.ref(Local)


def test_classes_of_objects_can_be_freed():
    """The programs of a loop stay with its code, which all of the classes have in common."""
    loops, classes = zip(*(total_of_its_own_class() for _ in range(4)), strict=True)
    assert any(loop.facts["versions"] for loop in loops)
    gc.collect()
    assert [known() for known in classes] == [None] * 4
