"""Short participles for why a device does not serve a request: one vocabulary, so that equal reasons fold.

Read after a number ("8 not matching the class selector …"). Used by the census and by findings; explain only counts and shortens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.allocator import Why
from dra_operator.features import feature_name

if TYPE_CHECKING:
    from dra_operator.allocator import Rejection

IN_USE: Final = "in use"

_WORDS: Final = {
    Why.CLASS_SELECTOR: "not matching the class selector {}",
    Why.REQUEST_SELECTOR: "not matching the selector {}",
    Why.IN_USE: IN_USE,
    Why.TAKEN: "taken by another request of the pod",
    Why.NODE: "for other nodes",
    Why.TAINT: "tainted {}",
    Why.CONSTRAINT: "not meeting {}",
    Why.CAPACITY: "with too little capacity ({})",
    Why.COUNTERS: "whose shared counters do not suffice ({})",
    Why.GROUPS: "not compatible with other devices in use of counter set {}",
    Why.NODE_FEATURE: "on a node that does not declare the feature {}",
    Why.NOT_BUILT: "with {} in a form that Kubernetes 1.36 did not have",
    Why.AVOIDED: "that could not be made ready for this claim lately",
    Why.GATE_OFF: "needing {}, which is switched off",
    Why.POOL_INCOMPLETE: "in a pool that its driver is still publishing",
    Why.POOL_INVALID: "in an invalid pool: {}",
    Why.NO_MEMBERS: "none matching",
    Why.TOO_MANY: "more than a claim can hold: {}",
}
"""Words for the reasons of the search; `{}` is the detail."""

_ABOUT_GATES: Final = frozenset({Why.NOT_BUILT, Why.GATE_OFF})
"""Reasons whose detail is a feature gate."""


_FRAMES: Final = {why: text.partition("{}") for why, text in _WORDS.items()}
"""What stands before and after the detail."""


def why_of(words: str) -> Why | None:
    """The sort of a reason in the vocabulary's words; None for what is no reason of the search."""
    frames = _FRAMES.items()
    return next(
        (why for why, (start, _, end) in frames if words.startswith(start) and words.endswith(end)), None
    )


def in_words(rejection: Rejection) -> str:
    """The vocabulary's word for one reason of the search."""
    about_gate = rejection.why in _ABOUT_GATES
    return _WORDS[rejection.why].format(feature_name(rejection.detail) if about_gate else rejection.detail)
