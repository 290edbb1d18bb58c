"""The compiler that the allocator uses: compiled expressions are kept, and so are their answers (`answers.py`)."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelError

from .answers import MAX_KEPT, Answers, KeptDerivation, KeptSelector
from .checking.checks import check_selector
from .checking.environment import stored_expressions
from .derived import compile_derived
from .evaluation.evaluate import plan
from .evaluation.generate import generate
from .functions.patterns import PATTERNS
from .meter import ImpatienceError, Meter
from .parsing.source import unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.features import Features

    from .checking.environment import Environment
    from .evaluation.evaluate import Program
    from .evaluation.source import Generated

    _Key = tuple[str, Environment, type["KeptSelector | KeptDerivation"]]

MAX_SELECTORS: Final = 2048
"""Compiled expressions kept; the least recently used goes first. Arbitrary: far more than clusters have."""

MAX_TEXT: Final = 256 * 1024
"""Characters of the expressions that are kept: 128 for each of `MAX_SELECTORS`. Compiled, one takes up to 500 bytes (measured), all 128 MiB."""

COMPILING: Final = 100
"""Units of work for each character that is compiled (measured: 10 to 60 µs, where a unit is a quarter of one)."""

SHORT: Final = 160
"""Characters that an impatient meter's owner compiles by itself: 15 ms at the very worst (94 µs each, for nested brackets), 2 ms as a rule. Nearly all
selectors are as short, and pods that wait for a thread may be overtaken."""


def compile_selector(expression: str, environment: Environment) -> tuple[Program, Generated | None]:
    """Parse, check and plan a selector: its closures, and the fast way if there is one.

    Raises:
        CelCompileError: it does not compile.
        CelUnsupported: it may be valid, but this engine cannot evaluate it.
    """
    try:
        checked = check_selector(expression, environment)
        program = plan(checked, environment.functions)
        if program.counted is not None:
            return program, None
        return program, generate(checked.node, environment.functions)
    except RecursionError as error:
        raise unsupported("so deep a nesting") from error


class Compiler:
    """Fulfils `SelectorCompiler` and `DerivationCompiler`.

    Args:
        environment: gives the names that expressions may use; the default is what the scheduler does (alloc L-6).
        max_kept: how many vectors, errors and values of answers to keep; those of the selector that was used least lately go first.

    Attributes:
        meter: limits the work of a decision; at first, there is no limit.
        answers: what is known about the devices of slices.
    """

    def __init__(
        self,
        environment: Callable[[Features], Environment] = lambda _: stored_expressions(),
        max_kept: int = MAX_KEPT,
    ) -> None:
        self._environment = environment
        self.meter = Meter()
        self.answers = Answers(self.meter, max_kept, self._by_use)
        self._text = 0
        self._known: OrderedDict[_Key, KeptSelector | KeptDerivation | CelError] = OrderedDict()

    def compile(self, expression: str, features: Features) -> KeptSelector:
        """Compile a selector, or find it compiled.

        Raises:
            CelCompileError: it does not compile.
            CelUnsupported: it may be valid, but this engine cannot evaluate it.
            WorkLimitReached: not yet, and no more work is allowed.
        """
        found = self._found((expression, self._environment(features), KeptSelector))
        assert isinstance(found, KeptSelector)
        return found

    def compile_derived(self, expression: str, features: Features) -> KeptDerivation:
        """Compile the expression of a derived attribute, or find it compiled.

        Raises:
            CelCompileError: it does not compile, or gives what no attribute can hold.
            CelUnsupported: it may be valid, but this engine cannot evaluate it.
            WorkLimitReached: not yet, and no more work is allowed.
        """
        found = self._found((expression, self._environment(features), KeptDerivation))
        assert isinstance(found, KeptDerivation)
        return found

    def _found(self, key: _Key) -> KeptSelector | KeptDerivation:
        found = self._known.get(key)
        if found is None:
            self.meter.check(COMPILING * len(key[0]))
            patience = self.meter.patience
            if patience is not None and len(key[0]) > SHORT:
                raise self.meter.later(key, lambda: self._compile_aside(key))
            try:
                with PATTERNS.impatient() if patience is not None else nullcontext():
                    found = self._keep(key, self._compiled(*key))
            except ImpatienceError:
                raise self.meter.later(key, lambda: self._compile_aside(key)) from None
            self.meter.spend(COMPILING * len(key[0]))
        else:
            with suppress(KeyError):  # a thread that compiles has just made room
                self._known.move_to_end(key)
        if isinstance(found, CelError):
            raise found.again()
        return found

    def _keep(
        self, key: _Key, made: KeptSelector | KeptDerivation | CelError
    ) -> KeptSelector | KeptDerivation | CelError:
        self._known[key] = made
        self._text += len(key[0])
        self._make_room()
        return made

    def _compile_aside(self, key: _Key) -> int:
        """An errand: compile what is long. Returns: the units."""
        if key not in self._known:
            self._keep(key, self._compiled(*key))
        return COMPILING * len(key[0])

    @property
    def expressions(self) -> int:
        """How many compiled expressions are kept, those that do not compile included."""
        return len(self._known)

    def _by_use(self) -> list[int]:
        return [kept.number for kept in self._known.values() if not isinstance(kept, CelError)]

    def _make_room(self) -> None:
        while len(self._known) > MAX_SELECTORS or (self._text > MAX_TEXT and len(self._known) > 1):
            (expression, *_), gone = self._known.popitem(last=False)
            self._text -= len(expression)
            if not isinstance(gone, CelError):
                self.answers.forget(gone.number)

    def _compiled(
        self, expression: str, environment: Environment, kind: type[KeptSelector | KeptDerivation]
    ) -> KeptSelector | KeptDerivation | CelError:
        before = PATTERNS.work
        try:
            if kind is KeptDerivation:
                return KeptDerivation(compile_derived(expression, environment), self.answers)
            return KeptSelector(*compile_selector(expression, environment), self.answers)
        except CelError as error:
            return error.again()
        finally:
            self.meter.spend(PATTERNS.work - before)
