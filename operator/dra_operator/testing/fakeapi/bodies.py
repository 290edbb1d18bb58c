"""Questions about request bodies that every write asks.

Called by `machinery`. Pure; the answers are values or refusals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi import failures
from dra_operator.testing.fakeapi.objects import Obj, encoded, meta, with_metadata
from dra_operator.testing.fakeapi.rules.metadata import check_metadata, check_metadata_update
from dra_operator.testing.fakeapi.strategies import strategy_of
from dra_operator.testing.fakeapi.structs import decoded_as, unusable
from dra_operator.validation.checks import wrong

if TYPE_CHECKING:
    from dra_operator.testing.fakeapi.kinds import Kind
    from dra_operator.testing.fakeapi.options import WriteOptions
    from dra_operator.validation.causes import Cause


def check_name(name: str, body: Obj) -> None:
    """The name in the body, if there is one, is that of the path.

    Raises:
        StatusError: 400.
    """
    if (meta(body).get("name") or name) != name:
        text = f"the name of the object ({meta(body)['name']}) does not match the name on the URL ({name})"
        raise failures.bad_request(text)


def check_configuration(kind: Kind, name: str, config: Any) -> None:
    """An applied configuration is an object that says what it is.

    Raises:
        StatusError: 400.
    """
    if not isinstance(config, dict):
        raise failures.bad_request("an applied configuration must be an object")
    if not config.get("kind") or not config.get("apiVersion"):
        text = f"invalid object type: /{config.get('apiVersion', '')}, Kind={config.get('kind', '')}"
        raise failures.bad_request(text)
    check_type(kind, config)
    if not meta(config).get("name"):
        text = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise failures.bad_request(text)
    check_name(name, config)


def without_status(obj: Obj) -> Obj:
    """`obj` without its status."""
    return {field: value for field, value in obj.items() if field != "status"}


def check_type(kind: Kind, body: Obj) -> None:
    """ApiVersion and kind of the body, if given, are those of the path.

    Raises:
        StatusError: 400.
    """
    api_version, name = body.get("apiVersion"), body.get("kind")
    if (api_version or kind.api_version) != kind.api_version or (name or kind.kind) != kind.kind:
        got = f"{api_version}, Kind={name}"
        text = f"the API version in the data ({got}) does not match the expected API version ({kind.api_version})"
        raise failures.bad_request(text)


def typed(kind: Kind, body: Obj, options: WriteOptions) -> Obj:
    """`body` as its kind's fields; what it has beyond them is dropped, warned of or refused.

    Raises:
        StatusError: 400, a value of a wrong type, or an unknown or duplicate field where the writer wants that checked.
    """
    decoded = decoded_as(kind, body)
    problems = [f'unknown field "{path}"' for path in decoded.unknown]
    problems += [f'duplicate field "{path}"' for path in options.duplicates]
    if problems and options.validation == "Strict":
        why = f"strict decoding error: {', '.join(problems)}"
        raise failures.bad_request(unusable(kind, why))
    if options.validation == "Warn":
        options.warnings.extend(problems)
    return decoded.obj


def undecodable_patch(error: failures.StatusError, patch: Any) -> failures.StatusError:
    """422: what a patch makes of the object cannot be decoded; unlike a body, it is reported as a field of no object."""
    why = error.message.partition(": ")[2]
    return failures.invalid(failures.About(), [wrong("patch", encoded(patch).decode(), why)])


def check_declared(kind: Kind, config: Obj) -> None:
    """An applied configuration has only fields of its kind, whatever the writer wants checked.

    Raises:
        StatusError: 500.
    """
    if unknown := decoded_as(kind, config).unknown:
        name = f"{meta(config).get('namespace', '')}/{meta(config)['name']}"
        what = f"({name}; {kind.group}/{kind.version}, Kind={kind.kind})"
        text = f"failed to create typed patch object {what}: .{unknown[0]}: field not declared in schema"
        raise failures.StatusError(500, "", text)


def set_namespace(kind: Kind, metadata: Obj, namespace: str) -> None:
    """The namespace of the path goes into the metadata; cluster-scoped objects have none.

    Raises:
        StatusError: 400.
    """
    if not kind.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace", namespace) != namespace:
        raise failures.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = namespace


def raise_invalid(kind: Kind, name: str, causes: list[Cause]) -> None:
    """422 if there are causes.

    Raises:
        StatusError: 422.
    """
    if causes:
        raise failures.invalid(kind.kind_about(name), causes)


def payload(obj: Obj) -> Obj:
    """What a generation counts: everything but metadata and status."""
    return {field: value for field, value in obj.items() if field not in ("metadata", "status")}


def same(new: Obj, old: Obj) -> bool:
    """Whether nothing changed but the version, so that a write would say nothing new."""
    return with_metadata(new, resourceVersion=None) == with_metadata(old, resourceVersion=None)


def update_causes(kind: Kind, new: Obj, old: Obj, subresource: str) -> list[Cause]:
    """Everything that is wrong with an update, whichever part of the object it is for."""
    strategy = strategy_of(kind)
    check = strategy.check_status if subresource == "status" else strategy.check_update
    return [*check_metadata(kind, new), *check_metadata_update(new, old), *check(new, old)]


def managers_so_far(new: Obj, old: Obj) -> list[Obj] | None:
    """The managedFields that a writer sent, if any; `[{}]` is the request to forget them."""
    sent = meta(new).get("managedFields")
    if sent == [{}]:
        return None
    return sent or meta(old).get("managedFields")
