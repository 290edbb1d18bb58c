"""Every error of the project, in one tree.

    DraError
    ├── InvalidInput                what somebody wrote is wrong; names the object, the path in it, the remedy
    │   ├── InvalidObject           an object of the API that cannot be decoded
    │   ├── InvalidClaim            a claim (or a class that it names) that can never be allocated as written
    │   ├── InvalidPod              a pod that kube-scheduler will not place as written
    │   ├── InvalidCapacity         an amount of a capacity that cannot be counted
    │   ├── InvalidPool             a pool whose slices contradict each other
    │   ├── InvalidQuantity         text that is no Kubernetes quantity
    │   └── InvalidSettings         flags, environment, settings file
    ├── Unsatisfied                 the input is fine, there is no allocation
    │   ├── NoSolution              impossible as things are; carries reasons
    │   ├── NodeFailure             this node cannot be judged (an invalid pool on it); others can
    │   │   └── AllConflict         all devices there are asked for, and they do not meet a constraint
    │   └── SearchLimitReached      gave up after that many steps: says nothing about possibility
    ├── WorkLimitReached            gave up after so much work of selectors: a later look goes on from there
    ├── CelError                    an expression
    │   ├── CelCompileError         does not compile in the DRA environment
    │   ├── CelRuntimeError         compiles, and fails on this device
    │   └── CelUnsupported          we cannot evaluate it (yet); never a wrong answer instead
    ├── NotLeading                  another operator may write now, this one may not (any more)
    ├── FeatureUnsupported          a feature of the input that is not built yet; names the feature
    └── ApiError                    the API server or the way to it
        ├── ApiConflict             409: stale resourceVersion or uid; read again
        ├── ApiAlreadyExists        409 AlreadyExists
        ├── ApiNotFound             404
        ├── ApiUnauthorized         401: the credentials are not accepted; nothing was done
        ├── ApiForbidden            403 (and 422 for missing rights on claims, cp V-78)
        ├── ApiInvalid              422 and 400
        ├── ApiGone                 410: the watch or list position is too old
        ├── ApiThrottled            429, with the seconds to wait when the server names them
        ├── ApiUnavailable          5xx, time-outs, refused connections
        ├── ApiNotServed            no usable version of a needed kind is served
        └── ApiWentBack             the server's state is older than what it has shown: restored from a backup

Foreign exceptions (aiohttp, celpy, msgspec, kopf) never leave the module that talks to that library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class DraError(Exception):
    """Root of the tree; never raised itself."""


class InvalidInput(DraError):
    """Somebody's input is wrong.

    Args:
        path: where in the object, e.g. `spec.devices.requests[0].exactly.count`; empty for the object as a whole.
        message: what is wrong and how to mend it.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


class InvalidObject(InvalidInput):
    """An object of the API that cannot be decoded.

    Args:
        ref: kind and name, e.g. `ResourceSlice node-1-gpu`.
        path: where in the object.
        message: what is wrong.
    """

    def __init__(self, ref: str, path: str, message: str) -> None:
        super().__init__(path, message)
        self.ref = ref

    def __str__(self) -> str:
        """The object, the path, the message."""
        return f"{self.ref}: {super().__str__()}"


class InvalidClaim(InvalidInput):
    """A claim that can never be allocated as written (alloc E-6…E-12).

    Args:
        path: where in the claim.
        message: upstream's words where it has any.
        claim: `namespace/name`; empty if it is not known.
        plain: what is wrong, for a reader who sees claim and path beside it; `message` if there is no shorter way to say it.
    """

    def __init__(self, path: str, message: str, *, claim: str = "", plain: str = "") -> None:
        super().__init__(path, message)
        self.claim = claim
        self.plain = plain or message


class InvalidPod(InvalidInput):
    """A pod that kube-scheduler will not place as written. `path` is in the pod."""


class InvalidPool(InvalidInput):
    """A pool whose slices contradict each other (alloc P-12). `path` is `<driver>/<pool>`."""


class InvalidCapacity(InvalidInput):
    """An amount of a device's capacity that cannot be counted (alloc Q-4b). `path` is the capacity."""


class InvalidQuantity(InvalidInput):
    """Text that is no Kubernetes quantity."""


class InvalidSettings(InvalidInput):
    """Settings that cannot be used together or at all; `path` is the flag, the variable, or file and key."""


class Unsatisfied(DraError):
    """The input is fine; there is no allocation now."""


class NoSolution(Unsatisfied):
    """No choice of devices satisfies the claims on this node.

    Args:
        reasons: one text a reason, most telling first; may be empty when nobody listened to the search.
    """

    def __init__(self, reasons: Sequence[str] = ()) -> None:
        super().__init__("; ".join(reasons) or "cannot allocate all claims")
        self.reasons = tuple(reasons)


class NodeFailure(Unsatisfied):
    """This node cannot be judged, others can (alloc E-1)."""


class AllConflict(NodeFailure):
    """A constraint refuses a device of a request for all of them (alloc E-11); the choice made before may be to blame."""


class SearchLimitReached(Unsatisfied):
    """The search gave up; that says nothing about whether a solution exists.

    Args:
        steps: search steps taken.
        looks: looks at devices, if these were too many; else 0.
    """

    def __init__(self, steps: int, looks: int = 0) -> None:
        self.effort = f"{looks} looks at devices" if looks else f"{steps} steps"
        """How much was tried, in words."""
        what = self.effort if looks else f"{steps} search steps"
        super().__init__(f"gave up after {what} without an answer")
        self.steps = steps


class WorkLimitReached(DraError):
    """The selectors of a decision need more work than it may do; what was found stays known, and the next look goes on from there.

    Says nothing about a claim, a class or a device, so it is never kept as an answer.

    Args:
        units: of work that the decision was allowed.
        spot: the selector at which it ended, as far as that is known.
        message: for the user; empty for plain words.
        claim: `namespace/name`; empty if it is not known.
    """

    def __init__(self, units: int, spot: Spot | None = None, message: str = "", claim: str = "") -> None:
        super().__init__(message or f"selectors took more than the {units} units of work of one decision")
        self.units = units
        self.spot = spot
        self.claim = claim


@dataclass(frozen=True, slots=True)
class Spot:
    """Which selector failed, and on what.

    Args:
        ref: the object that holds it, as `DeviceClass gpu` or `ResourceClaim ns/name`; empty where claims share the answer.
        path: in that object, or in the request if `ref` is empty.
        device: `driver/pool/device`; empty if the expression fails on none in particular.
        detail: the failure itself.
        bare: whether that device publishes neither attributes nor capacities.
        published: qualified names of its attributes and capacities, sorted; empty if it fails on no device.
    """

    ref: str
    path: str
    device: str
    detail: str
    bare: bool = False
    published: tuple[str, ...] = ()


class CelError(DraError):
    """An expression that does not give a value.

    Args:
        message: what went wrong, with upstream's prefix once it is known where.
        spot: where.
    """

    def __init__(self, message: str = "", spot: Spot | None = None) -> None:
        super().__init__(message)
        self.spot = spot

    def again(self) -> CelError:
        """The same error to be raised once more: errors are answers that are kept, and an exception that is raised keeps its traceback."""
        return type(self)(*self.args)


@dataclass(frozen=True, slots=True)
class CelFault:
    """One fault of an expression.

    Args:
        message: upstream's words, without position.
        line: from 1; -1 if the fault belongs to the expression as a whole.
        column: in characters, from 1; 0 if there is none.
        offset: in characters from the start of the expression, from 0; -1 if there is none.
        hint: what may mend it, in our own words; empty if nothing is known.
    """

    message: str
    line: int
    column: int
    offset: int
    hint: str = ""


class CelCompileError(CelError):
    """The expression does not compile in the DRA environment.

    Args:
        message: everything in one text: all faults as upstream shows them, then the hints.
        spot: where the expression stands.
        faults: the faults one by one, in upstream's order; empty where the expression as a whole is refused.
    """

    def __init__(
        self, message: str = "", spot: Spot | None = None, faults: tuple[CelFault, ...] = ()
    ) -> None:
        super().__init__(message, spot)
        self.faults = faults

    def again(self) -> CelCompileError:
        """The same error to be raised once more."""
        return CelCompileError(str(self), self.spot, self.faults)


class CelRuntimeError(CelError):
    """The expression fails on this device."""


class CelUnsupported(CelError):
    """The engine cannot evaluate this expression; no answer is better than a wrong one."""


class NotLeading(DraError):
    """This operator may not write: it does not hold the Lease, or could not renew it in time. Nothing was sent."""


class FeatureUnsupported(DraError):
    """The input uses a feature that is not built yet.

    Args:
        feature: Kubernetes' name of the feature gate or field.
        message: what uses it; kept as `what`.
        claim: `namespace/name`; empty if it is not known.
    """

    def __init__(self, feature: str, message: str, *, claim: str = "") -> None:
        super().__init__(f"{message}: {feature} is not supported yet")
        self.feature = feature
        self.what = message
        self.claim = claim


class ApiError(DraError):
    """The API server refused, or could not be reached.

    Args:
        message: the server's own words where it sent any.
        status: the HTTP status; 0 when there was no answer.
        retry_after: seconds that the server asks to wait; None when it does not say.
    """

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ApiConflict(ApiError):
    """The object changed since it was read, or is another one (uid); read again."""


class ApiAlreadyExists(ApiError):
    """An object of that name exists."""


class ApiNotFound(ApiError):
    """No such object, or no such kind."""


class ApiUnauthorized(ApiError):
    """The credentials are not accepted; others were asked for, and there are none, or they are not accepted either."""


class ApiForbidden(ApiError):
    """Rights are missing."""


class ApiInvalid(ApiError):
    """The server refuses the object as it is."""


class ApiGone(ApiError):
    """The resourceVersion to go on from is too old; list again."""


class ApiThrottled(ApiError):
    """The server asks to slow down.

    Args:
        message: the server's words.
        retry_after: seconds to wait; None when the server does not say.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, status=429, retry_after=retry_after)


class ApiUnavailable(ApiError):
    """No answer, or a 5xx: the write may or may not have happened."""


class ApiNotServed(ApiError):
    """No usable version of a needed kind is served."""


class ApiWentBack(ApiError):
    """The server's newest state is older than what it has shown before: nothing that is known can be compared with it."""
