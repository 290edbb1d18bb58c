"""Fields that a kind has not, that come twice, or that hold another type: dropped, warned of, or refused.

`fieldValidation` says which; kubectl asks for Strict, the operator for nothing, which is Warn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.validation.fields import table
from tests.contract.client import CLAIM, CONFIG, POD
from tests.contract.fieldtable import fields_of, kinds_in, merges_of
from tests.contract.objects import claim, config, pod

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj

JSON = "application/json"


def _warnings(answer: Answer) -> list[str]:
    return [value for name, value in answer.headers.items() if name == "Warning"]


def _old_claim() -> Obj:
    """A v1 header with a v1beta1 body."""
    body = claim()
    body["spec"]["devices"]["requests"] = [{"name": "gpu", "deviceClassName": "gpu.example.com"}]
    return body


def _typo() -> Obj:
    body = claim()
    body["spec"]["devices"]["requests"][0]["exactly"]["counts"] = 2
    return body


async def test_unknown_field_is_dropped_with_a_warning(api: Client) -> None:
    made = (await api.create(CLAIM, _typo())).ok()
    assert "counts" not in made.body["spec"]["devices"]["requests"][0]["exactly"]
    assert _warnings(made) == [r'299 - "unknown field \"spec.devices.requests[0].exactly.counts\""']


async def test_unknown_field_is_ignored_on_demand(api: Client) -> None:
    made = (await api.create(CLAIM, _typo(), fieldValidation="Ignore")).ok()
    assert "counts" not in made.body["spec"]["devices"]["requests"][0]["exactly"]
    assert _warnings(made) == []


async def test_unknown_field_is_refused_when_strict(api: Client) -> None:
    """As kubectl asks for it."""
    refused = await api.create(CLAIM, _typo(), fieldValidation="Strict")
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.body["message"] == (
        'ResourceClaim in version "v1" cannot be handled as a ResourceClaim: strict decoding error:'
        ' unknown field "spec.devices.requests[0].exactly.counts"'
    )


async def test_body_of_an_older_version_under_a_newer_header(api: Client) -> None:
    """The fields of v1beta1 are unknown in v1: dropped, and then the request lacks `exactly`; strictly, the first is told."""
    refused = await api.create(CLAIM, _old_claim())
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == ["spec.devices.requests[0]"]
    strict = await api.create(CLAIM, _old_claim(), fieldValidation="Strict")
    assert 'unknown field "spec.devices.requests[0].deviceClassName"' in strict.body["message"]


async def test_unknown_fields_of_pods_and_metadata(api: Client) -> None:
    body = pod(
        claims=({"name": "a", "source": {"resourceClaimTemplateName": "t"}, "resourceClaimName": "c"},)
    )
    body["metadata"]["label"] = {}
    refused = await api.create(POD, body, fieldValidation="Strict")
    assert refused.body["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error:'
        ' unknown field "metadata.label", unknown field "spec.resourceClaims[0].source"'
    )


async def test_field_that_comes_twice_is_warned_of_and_the_last_wins(api: Client) -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1","a":"2"}}'
    made = (await api.call("POST", CONFIG, text)).ok()
    assert made.body["data"] == {"a": "2"}
    assert _warnings(made) == [r'299 - "duplicate field \"data.a\""']


async def test_field_that_comes_twice_is_refused_when_strict(api: Client) -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","name":"d"}}'
    refused = await api.call("POST", CONFIG, text, fieldValidation="Strict")
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert 'strict decoding error: duplicate field "metadata.name"' in refused.body["message"]


@pytest.mark.parametrize("media", ["merge", "strategic"])
async def test_unknown_field_of_a_patch(api: Client, media: str) -> None:
    (await api.create(CONFIG, config())).ok()
    patch = getattr(api, media)
    warned = (await patch(f"{CONFIG}/c", {"dat": {"a": "b"}})).ok()
    assert "dat" not in warned.body
    assert _warnings(warned) == [r'299 - "unknown field \"dat\""']
    refused = await patch(f"{CONFIG}/c", {"dat": {"a": "b"}}, fieldValidation="Strict")
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == ["patch"]
    assert refused.body["message"].startswith(' "" is invalid: patch: Invalid value: ')
    assert refused.body["message"].endswith(': strict decoding error: unknown field "dat"')


@pytest.mark.parametrize("media", ["merge", "strategic"])
async def test_value_of_another_type_in_a_patch(api: Client, media: str) -> None:
    (await api.create(POD, pod())).ok()
    refused = await getattr(api, media)(f"{POD}/p", {"spec": {"priority": "high"}})
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == ["patch"]


async def test_unknown_field_of_a_replace_is_refused_when_strict(api: Client) -> None:
    (await api.create(CONFIG, config())).ok()
    refused = await api.replace(f"{CONFIG}/c", {**config(), "dat": {}}, fieldValidation="Strict")
    assert (refused.code, refused.reason) == (400, "BadRequest")


async def test_unknown_field_of_an_apply_is_refused_always(api: Client) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dat": {}}
    refused = await api.apply(f"{CONFIG}/c", body, "one")
    assert refused.code == 500
    assert refused.body["message"] == (
        "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .dat: field not declared in schema"
    )


@pytest.mark.parametrize(
    ("count", "got"), [("two", "string"), (True, "bool"), ([1], "array"), ({}, "object"), (1.5, "number 1.5")]
)
async def test_value_of_another_type_is_a_bad_request(api: Client, count: object, got: str) -> None:
    body = claim()
    body["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
    refused = await api.create(CLAIM, body)
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.body["message"] == (
        'ResourceClaim in version "v1" cannot be handled as a ResourceClaim: json: cannot unmarshal'
        f" {got} into Go struct field ExactDeviceRequest.spec.devices.requests.exactly.count of type int64"
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"containers": {}}, "object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        (
            {"nodeSelector": []},
            "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        ({"nodeSelector": {"a": 1}}, "number into Go struct field PodSpec.spec.nodeSelector of type string"),
        ({"affinity": "x"}, "string into Go struct field PodSpec.spec.affinity of type v1.Affinity"),
        ({"hostNetwork": "yes"}, "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        ({"priority": 2**31}, "number 2147483648 into Go struct field PodSpec.spec.priority of type int32"),
    ],
)
async def test_other_wrong_types(api: Client, spec: Obj, said: str) -> None:
    refused = await api.create(POD, pod(**spec))
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.body["message"] == (
        f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {said}'
    )


async def test_quantities_and_int_or_strings_are_read_in_any_form(api: Client) -> None:
    body = pod()
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 0.5, "memory": 1024}}
    made = (await api.create(POD, body)).ok()
    assert made.body["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1024"}


async def test_quantity_that_is_none_is_a_bad_request(api: Client) -> None:
    body = pod()
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    refused = await api.create(POD, body)
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        in refused.body["message"]
    )


async def test_kind_of_the_body_must_be_that_of_the_path(api: Client) -> None:
    body = {**config(), "kind": "Secret"}
    refused = await api.create(CONFIG, body)
    assert (refused.code, refused.reason) == (400, "BadRequest")


@pytest.mark.parametrize("group", sorted({kind.rpartition("/")[0] for kind in table().kinds}))
async def test_table_of_fields_is_that_of_the_server(api: Client, group: str) -> None:
    """The embedded server's table, held against the OpenAPI document of the server under contract."""
    path = f"/openapi/v3/{'apis' if '/' in group else 'api'}/{group}"
    document = (await api.get(path)).ok().body
    schemas = document["components"]["schemas"]
    served = dict(kinds_in(document))
    for kind, struct in table().kinds.items():
        if kind.rpartition("/")[0] == group:
            assert served[kind] == struct
            _compare(schemas, struct)


def _compare(schemas: Obj, root: str) -> None:
    """The struct and all that it reaches."""
    todo, seen = [root], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        fields = fields_of(schemas[name])
        assert fields == table().structs[name], name
        for field, merge in merges_of(name, schemas[name]):
            assert merge == table().merges[field]
        todo += [code.partition("@")[2] for code in fields.values() if "@" in code]
