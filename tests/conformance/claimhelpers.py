"""Compares what we make of claims, their owners, consumers and config with recorded answers of upstream (oracle 1.4): part of `python -m tests.conformance`.

One row in HELPERS for each of upstream's tests; a case names its test. Errors need upstream's words in ours. It reads no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from dra_operator.allocator import tolerates
from dra_operator.cluster import (
    bind_to,
    claim_name,
    is_generated,
    is_reserved,
    name_problem,
    ownership_problem,
    pod_claim_names,
)
from dra_operator.errors import InvalidPod
from dra_operator.model import (
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceToleration,
    Pod,
    PodExtendedResourceClaimStatus,
    PodGroup,
    PodResourceClaim,
    PodResourceClaimStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    base_request,
    from_object,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.model import Value

Json = dict[str, Any]
Answers = tuple[object, object]
"""Upstream's and ours."""

ValueT = TypeVar("ValueT", bound="Value")


def accepts(raw: Json) -> bool:
    """Whether a line is a case of this kind."""
    return raw.get("group") in HELPERS


def difference(raw: Json) -> str:
    """What is wrong with our answer to a case; empty when nothing is."""
    theirs, ours = HELPERS[raw["group"]](raw["case"])
    return "" if theirs == ours else f"upstream {theirs}, ours {ours}"


def _value(kind: type[ValueT], raw: Json | None) -> ValueT:
    return from_object(kind, raw or {})


def _values(kind: type[ValueT], raw: list[Json] | None) -> tuple[ValueT, ...]:
    return tuple(from_object(kind, each) for each in raw or ())


def _words(theirs: str | None, ours: str) -> Answers:
    """Errors as text, empty for none; ours stands for theirs where it has their words."""
    return (theirs or "", theirs if theirs and theirs in ours else ours)


def _name(case: Json) -> Answers:
    owner: Pod | PodGroup
    owner = _value(PodGroup, case["podGroup"]) if "podGroup" in case else _value(Pod, case["pod"])
    entry = _value(PodResourceClaim, case["podGroupClaim" if "podGroup" in case else "podClaim"])
    told, problem = _words(case.get("expectedError"), name_problem(owner, entry))
    name = claim_name(owner, entry)[1]
    return (
        (case.get("expectedName"), case["expectedCheck"], told),
        (name, is_generated(entry) and not problem, problem),
    )


def _is_for_pod(case: Json) -> Answers:
    pod, claim = _value(Pod, case["pod"]), _value(ResourceClaim, case["claim"])
    return _words(case["expectedError"], ownership_problem(pod, claim, groups=case["acceptPodGroup"]))


def _is_for_group(case: Json) -> Answers:
    """Upstream's table has the group in a field called `pod`."""
    group, claim = _value(PodGroup, case["pod"]), _value(ResourceClaim, case["claim"])
    return _words(case["expectedError"], ownership_problem(group, claim))


def _is_reserved(case: Json) -> Answers:
    pod, claim = _value(Pod, case["pod"]), _value(ResourceClaim, case["claim"])
    return case["expectedResult"], is_reserved(pod, claim, groups=case["acceptPodGroup"])


def _bind_to(case: Json) -> Answers:
    group = _value(PodGroup, case["podGroup"]) if case["podGroup"] else None
    theirs = case["expectedError"] or _value(ResourceClaimConsumerReference, case["expected"])
    try:
        return theirs, bind_to(_value(Pod, case["pod"]), _value(PodResourceClaim, case["podClaim"]), group)
    except InvalidPod as error:
        return _words(case["expectedError"], str(error))


def _base_request(case: Json) -> Answers:
    return case["expectedBaseRequestRef"], base_request(case["requestRef"])


def _config(case: Json) -> Answers:
    devices = DeviceAllocationResult(
        config=_values(DeviceAllocationConfiguration, case["deviceConfigurations"])
    )
    result = _value(DeviceRequestAllocationResult, case["result"])
    return _values(DeviceAllocationConfiguration, case["expectedConfigs"]), devices.config_for(result)


def _tolerates(case: Json) -> Answers:
    toleration, taint = _value(DeviceToleration, case["toleration"]), _value(DeviceTaint, case["taint"])
    return case["expectTolerated"], tolerates(toleration, taint)


def _same_statuses(case: Json) -> Answers:
    """The order counts (alloc W-11)."""
    one, other = (_values(PodResourceClaimStatus, case[name]) for name in ("sliceA", "sliceB"))
    return case["expectEqual"], one == other


def _same_special_status(case: Json) -> Answers:
    statuses = (case["statusA"], case["statusB"])
    one, other = (None if raw is None else _value(PodExtendedResourceClaimStatus, raw) for raw in statuses)
    return case["expectEqual"], one == other


def _claims(case: Json) -> Answers:
    """Names in order, each with whether the pod has to own that claim."""
    wanted = [(each["name"], each["mustCheckOwner"]) for each in case["expected"] or ()]
    return wanted, list(pod_claim_names(_value(Pod, case["pod"])))


HELPERS: Final[dict[str, Callable[[Json], Answers]]] = {
    "TestBaseRequestRef": _base_request,
    "TestBindTo": _bind_to,
    "TestConfigForResult": _config,
    "TestIsReservedForPod": _is_reserved,
    "TestName": _name,
    "TestNameFromPodGroup": _name,
    "TestPodClaims": _claims,
    "TestPodExtendedStatusEqual": _same_special_status,
    "TestPodStatusEqual": _same_statuses,
    "TestResourceClaimIsFor/Pod": _is_for_pod,
    "TestResourceClaimIsFor/PodGroup": _is_for_group,
    "TestTolerationToleratesTaint": _tolerates,
}
"""Test of upstream's → its question to us."""
