"""What does not change during a search: whether a device can serve a request at all, and what of it the request takes.

Asked by `search`, `taking` and `outlook`; what does not hang on what claims hold is kept with the view (`memory`). It must not know what the call has taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import InvalidCapacity, InvalidClaim

from .answers import UNASKED
from .capacity import NOTHING, Rules, Share, lack, share_of
from .matcher import not_selectable
from .reporter import Rejection, Why
from .taints import taint_text, untolerated
from .unbuilt import device_needs, gate_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.model import Device, DeviceId

    from .pools import Candidate, View
    from .requests import Wanted
    from .state import Inputs, Options

_NOTHING: Final = Share({})
_IN_USE: Final = Rejection(Why.IN_USE)


class Judge:
    """What does not change during a search: whether a device can serve a request at all.

    The order of tests is alloc S-11, L-1, S-15: a device in use is not shown to CEL (L-4).
    """

    def __init__(self, inputs: Inputs, options: Options, view: View) -> None:
        self._inputs = inputs
        self._options = options
        self._view = view
        self._candidates = view.candidates
        self._devices = inputs.allocated.devices
        self._used = inputs.allocated.capacity
        self._avoided = inputs.avoided
        self._has_shares = bool(inputs.allocated.shared or inputs.allocated.capacity)
        self._is_sharing = inputs.features.consumable_capacity

    def refusal(self, wanted: Wanted, position: int) -> Rejection | None:
        """Why the device at that position can never serve, or None.

        Raises:
            CelError: a selector fails on it.
            InvalidClaim: with `upstream_0_37`, if an amount cannot be counted.
        """
        device_id = self._candidates[position].id
        if device_id in self._devices and not wanted.is_admin:
            return _IN_USE
        known = wanted.known
        refusal = known.selected[position]
        if refusal is UNASKED:
            refusal = known.selected[position] = self._select(wanted, position)
        if refusal is None and self._used and not wanted.is_all:
            refusal = self._outrun(wanted, position)
        return refusal or self._forbidden(wanted, position)

    def _select(self, wanted: Wanted, position: int) -> Rejection | None:
        """Whether it is selected, and has what is asked for (alloc Q-1). All devices of mode All are."""
        if wanted.is_all:
            return None
        refusal = not_selectable(self._inputs.features, self._view, wanted.matcher, position)
        if refusal is not None:
            return refusal
        lacking = self.share(wanted, position).refusal
        return Rejection(Why.CAPACITY, lacking) if lacking else None

    def _outrun(self, wanted: Wanted, position: int) -> Rejection | None:
        """Whether it has less than is asked for, after what claims take of it (alloc Q-1)."""
        lacking = self.lack(position, self.share(wanted, position))
        return Rejection(Why.CAPACITY, lacking) if lacking else None

    def _forbidden(self, wanted: Wanted, position: int) -> Rejection | None:
        known = wanted.known
        refusal = known.allowed[position]
        if refusal is UNASKED:
            refusal = known.allowed[position] = self._forbid(wanted, position)
        if self._has_shares and (refusal is None or refusal.why is Why.TAINT):
            refusal = self._shared_out(wanted, position) or refusal
        if refusal is None and self._avoided and self._candidates[position].id in self._avoided:
            return Rejection(Why.AVOIDED)
        return refusal

    def _forbid(self, wanted: Wanted, position: int) -> Rejection | None:
        candidate = self._candidates[position]
        return self._gated(candidate) or self._tainted(wanted, candidate)

    def is_shareable(self, device: Device) -> bool:
        """Whether several may use the device."""
        return self._is_sharing and bool(device.allow_multiple_allocations)

    def share(self, wanted: Wanted, position: int) -> Share:
        """What the request takes of the device; nothing without the feature.

        Raises:
            InvalidClaim: with `upstream_0_37`, if an amount cannot be counted: fatal there (alloc Q-4b).
        """
        known = wanted.known.shares[position]
        if known is None:
            known = wanted.known.shares[position] = self._share(wanted, position)
        return known

    def _share(self, wanted: Wanted, position: int) -> Share:
        features, candidate = self._inputs.features, self._view.candidates[position]
        if not features.consumable_capacity or not (candidate.device.capacity or wanted.entry.capacity):
            return _NOTHING
        rules = Rules(features.fractional_capacity_range, self._options.upstream_0_37)
        try:
            return share_of(candidate.device, wanted.entry.capacity, rules)
        except InvalidCapacity as error:
            if not self._options.upstream_0_37:
                return Share({}, str(error))
            text = f"claim {wanted.report.claim}, request {wanted.ref.rpartition('/')[2]}: checking capacity for device {candidate.id}: {error}"
            raise InvalidClaim(f"{wanted.spot.path}capacity", text) from error

    def lack(
        self, position: int, share: Share, in_flight: Mapping[str, int] = NOTHING, *, in_words: bool = True
    ) -> str:
        """What there is too little left of, beside what claims and this call take; empty if nothing."""
        candidate = self._candidates[position]
        used = self._used.get(candidate.id)
        if not used and not in_flight:
            return ""  # `Share.refusal` has told
        return lack(candidate.device, share, used or {}, in_flight, in_words=in_words)

    def left(self, position: int, name: str) -> int:
        """What claims leave of a capacity of the device, in units of 10^-9."""
        candidate = self._view.candidates[position]
        used = self._inputs.allocated.capacity.get(candidate.id, {}).get(name)
        return candidate.device.capacity[name].value.nano - (used.nano if used is not None else 0)

    def _gated(self, candidate: Candidate) -> Rejection | None:
        """Features that are off, that the node has not (alloc S-15.2), or that are not built."""
        features, device = self._inputs.features, candidate.device
        if gate := device_needs(device):
            return Rejection(Why.NOT_BUILT, gate)
        if device.consumes_counters and not features.partitionable_devices:
            return Rejection(Why.GATE_OFF, gate_of("partitionable_devices"))
        if candidate.slice_.spec.skip_node_operations:
            gate = gate_of("optional_node_operations")
            if self._options.upstream_experimental and not features.optional_node_operations:
                return Rejection(Why.GATE_OFF, gate)
            if features.optional_node_operations and gate not in self._view.node.status.declared_features:
                return Rejection(Why.NODE_FEATURE, gate)
        return None

    def _shared_out(self, wanted: Wanted, position: int) -> Rejection | None:
        """Whether the device became dedicated under its users (alloc Q-8)."""
        candidate = self._candidates[position]
        is_ours = self.is_shareable(candidate.device) or wanted.is_admin or self._options.upstream_0_37
        is_theirs = not is_ours and self._inputs.allocated.is_shared(candidate.id)
        return Rejection(Why.IN_USE, "shares of it") if is_theirs else None

    @property
    def minds_counters(self) -> bool:
        """Whether there are counters: without their gate no device that draws on one is taken (alloc S-15.2)."""
        return self._inputs.features.partitionable_devices

    @property
    def minds_groups(self) -> bool:
        """Whether compatibility groups are looked at."""
        return self._inputs.features.compatibility_groups

    def is_allocated(self, device_id: DeviceId) -> bool:
        """Whether a claim holds the device or a share of it."""
        return self._inputs.allocated.is_allocated(device_id)

    def is_shared(self, device_id: DeviceId) -> bool:
        """Whether a claim holds a share of the device."""
        return self._inputs.allocated.is_shared(device_id)

    def _tainted(self, wanted: Wanted, candidate: Candidate) -> Rejection | None:
        if not self._inputs.features.device_taints or not candidate.device.taints:
            return None
        taint = untolerated(candidate.device, wanted.tolerations, self._options.ignored_taints)
        return None if taint is None else Rejection(Why.TAINT, taint_text(taint))
