"""The door of the embedded API server: who asks (tokens, impersonation), and whether he may.

Called by `http` before anything else. Whoever sends no credentials at all is the administrator, unlike on a real server: kubectl sends
none over plain HTTP, and the port is on loopback. A server without access control has the `OPEN` door: everybody is the administrator. What
rights follow from which roles is for `access`.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.access import (
    ADMIN,
    AUTHENTICATED,
    Access,
    Action,
    Identity,
    denied,
    service_account,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multidict import CIMultiDictProxy

    from dra_operator.testing.fakeapi.faults import Call
    from dra_operator.testing.fakeapi.store import Store

_BEARER = "bearer "
_EXTRA = "impersonate-extra-"
_ONE_NAME = re.compile(r"metadata\.name==?(?P<name>[^,=!]+)")


class Door(Protocol):
    """What `http` asks of whoever keeps the door."""

    def identify(self, headers: CIMultiDictProxy[str], action: Action) -> Identity:
        """Who asks for `action`; raises 401 or 403 as StatusError."""
        ...

    def allows(self, who: Identity, action: Action) -> bool:
        """Whether `who` may do it."""
        ...


class OpenDoor:
    """Everybody is welcome and may do everything."""

    def identify(self, headers: CIMultiDictProxy[str], action: Action) -> Identity:
        """The administrator, whoever asks."""
        del headers, action
        return ADMIN

    def allows(self, who: Identity, action: Action) -> bool:
        """Yes."""
        del who, action
        return True


OPEN = OpenDoor()


@dataclass(slots=True)
class Guard:
    """Bearer tokens and role-based access control over one store."""

    store: Store
    tokens: dict[str, Identity] = field(default_factory=dict)

    def token(self, who: Identity) -> str:
        """A new token for `who`; it lives as long as the server."""
        made = secrets.token_urlsafe(24)
        self.tokens[made] = who
        return made

    def user_token(self, name: str, *groups: str) -> str:
        """A new token for a user in some groups."""
        return self.token(Identity(name, (*groups, AUTHENTICATED)))

    def account_token(self, namespace: str, name: str, uid: str) -> str:
        """A new token for a ServiceAccount, as TokenRequest gives it."""
        return self.token(service_account(namespace, name, uid))

    def identify(self, headers: CIMultiDictProxy[str], action: Action) -> Identity:
        """Who asks for `action`, impersonation included.

        Raises:
            StatusError: 401 (the token is unknown), 403 (the sender may not impersonate).
        """
        who = self._sender(headers.get("Authorization", ""))
        user = headers.get("Impersonate-User")
        if not user:
            return who
        groups = tuple(headers.getall("Impersonate-Group", ()))
        if not self._may_impersonate(who, user, groups):
            raise denied(who, replace(action, verb=f"impersonate-on:user-info:{action.verb}"))
        if user.startswith("system:serviceaccount:") and not groups:
            _, _, namespace, name = user.split(":", 3)
            return replace(service_account(namespace, name), extra=_extra(headers))
        known = groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)
        return Identity(user, known, extra=_extra(headers))

    def _sender(self, authorization: str) -> Identity:
        if not authorization:
            return ADMIN
        if authorization[: len(_BEARER)].lower() == _BEARER:
            found = self.tokens.get(authorization[len(_BEARER) :].strip())
            if found is not None:
                return found
        raise failures.unauthorized()

    def _may_impersonate(self, who: Identity, user: str, groups: tuple[str, ...]) -> bool:
        wanted = [Action("impersonate", resource="users", name=user)]
        wanted += [Action("impersonate", resource="groups", name=group) for group in groups]
        return all(self.allows(who, action) for action in wanted)

    def allows(self, who: Identity, action: Action) -> bool:
        """Whether the stored roles allow it."""
        return Access(self.store).allows(who, action)


def _extra(headers: CIMultiDictProxy[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers.items():
        if name.lower().startswith(_EXTRA):
            found.setdefault(unquote(name[len(_EXTRA) :]).lower(), []).append(value)
    return found


def action_of(call: Call, query: Mapping[str, str]) -> Action:
    """A resource request, as roles see it; a list or watch of one name counts as a request for that object."""
    name = call.name
    if call.verb in ("list", "watch") and not name:
        match = _ONE_NAME.fullmatch(query.get("fieldSelector", ""))
        name = match["name"] if match else ""
    return Action(call.verb, call.group, call.resource, call.namespace, name)
