"""What the allocator needs of a CEL engine, and nothing else (cel.md, section 5).

The engine behind it can be replaced without the allocator noticing. Implementations are pure: no I/O, no clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dra_operator.features import Features
    from dra_operator.model import Device, DeviceAttribute, ResourceSlice

    from .meter import Meter


class Selector(Protocol):
    """One compiled expression."""

    def matches(self, slice_: ResourceSlice, device: Device) -> bool:
        """Whether the device meets it. Answers may be cached per slice object: slices are frozen.

        Raises:
            CelRuntimeError: the expression fails on this device; the text is upstream's where ours knows it (alloc L-4).
            CelUnsupported: the engine cannot evaluate it on this device.
            WorkLimitReached: the answer is not known yet, and the decision may do no more work.
        """
        ...

    def matching(self, slice_: ResourceSlice) -> int | None:
        """The devices of a slice that meet it, as bits by their places, where that is known of all of them or cheap to find out.

        None where some device fails or has to be evaluated singly: ask `matches`.

        Raises:
            WorkLimitReached: the answers are not known yet, and the decision may do no more work.
        """
        ...


class Derivation(Protocol):
    """One compiled expression of a derived attribute (alloc D-1)."""

    def attribute(self, slice_: ResourceSlice, device: Device) -> DeviceAttribute:
        """The attribute that the expression gives to the device. Answers may be cached per slice object.

        Raises:
            CelRuntimeError: the expression fails on this device, or gives what no attribute can hold (alloc D-4).
            CelUnsupported: the engine cannot evaluate it on this device.
            WorkLimitReached: the answer is not known yet, and the decision may do no more work.
        """
        ...


class SelectorCompiler(Protocol):
    """Turns expressions into selectors; keeps what it compiled.

    Attributes:
        meter: limits the work of a decision.
    """

    meter: Meter

    def compile(self, expression: str, features: Features) -> Selector:
        """Compile one expression in the environment that the features give (alloc L-6).

        Raises:
            CelCompileError: it does not compile.
            CelUnsupported: it may be valid, but this engine cannot evaluate it.
            WorkLimitReached: it is not compiled yet, and the decision may do no more work.
        """
        ...


class DerivationCompiler(Protocol):
    """Turns expressions of derived attributes into what computes them; keeps what it compiled."""

    def compile_derived(self, expression: str, features: Features) -> Derivation:
        """Compile the expression of a derived attribute, whose result is a scalar or a list (alloc D-4).

        Raises:
            CelCompileError: it does not compile.
            CelUnsupported: it may be valid, but this engine cannot evaluate it.
            WorkLimitReached: it is not compiled yet, and the decision may do no more work.
        """
        ...


class CelCompiler(SelectorCompiler, DerivationCompiler, Protocol):
    """Both: what the allocator needs."""
