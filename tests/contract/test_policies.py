"""AllocationPolicy, as `crds/` defines it: defaults, rules, pruning, lists as maps, the status, columns.

The definition is installed once and stays: both servers are thrown away. The kind is cluster-scoped, hence the names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.contract.objects import DEFINITION, POLICIES

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj

GPUS = {"driver": "gpu.example.com"}


def _policy(name: str, *pools: Obj, **spec: Any) -> Obj:
    return {
        "apiVersion": "dra-operator.io/v1alpha1",
        "kind": "AllocationPolicy",
        "metadata": {"name": name},
        "spec": {"pools": list(pools), **spec},
    }


def _errors(answer: Answer) -> list[tuple[str, str]]:
    found = [(cause["field"], cause["reason"]) for cause in answer.causes]
    return [error for error in found if error[0] != "<nil>"]


async def test_order_and_pool_are_defaulted(policies: Client, unique: str) -> None:
    made = (await policies.create(POLICIES, _policy(unique, GPUS))).ok()
    assert made.body["spec"] == {"order": "FirstFit", "pools": [{"driver": "gpu.example.com", "pool": ""}]}
    assert made.meta["generation"] == 1


@pytest.mark.parametrize(
    ("pools", "spec", "expected"),
    [
        ([], {}, [("spec.pools", "FieldValueInvalid")]),
        ([{}], {}, [("spec.pools[0].driver", "FieldValueRequired")]),
        ([{"driver": ""}], {}, [("spec.pools[0].driver", "FieldValueInvalid")] * 2),
        ([{"driver": "x" * 64}], {}, [("spec.pools[0].driver", "FieldValueTooLong")]),
        ([{"driver": 7}], {}, [("spec.pools[0].driver", "FieldValueTypeInvalid")]),
        ([{"driver": "gpu..example.com"}], {}, [("spec.pools[0].driver", "FieldValueInvalid")]),
        ([{"driver": "a_b"}], {}, [("spec.pools[0].driver", "FieldValueInvalid")]),
        ([{**GPUS, "pool": "/n1"}], {}, [("spec.pools[0].pool", "FieldValueInvalid")]),
        ([{**GPUS, "pool": "x" * 254}], {}, [("spec.pools[0].pool", "FieldValueTooLong")]),
        ([GPUS, GPUS], {}, [("spec.pools[1]", "FieldValueDuplicate")]),
        ([{**GPUS, "pool": "n1"}, {**GPUS, "pool": "n1"}], {}, [("spec.pools[1]", "FieldValueDuplicate")]),
        ([{"driver": f"d{n}.example.com"} for n in range(65)], {}, [("spec.pools", "FieldValueTooMany")]),
        ([GPUS], {"order": "Random"}, [("spec.order", "FieldValueNotSupported")]),
    ],
)  # fmt: skip
async def test_bad_policy_is_invalid_where_it_is_bad(
    policies: Client, unique: str, pools: list[Obj], spec: Obj, expected: list[tuple[str, str]]
) -> None:
    refused = await policies.create(POLICIES, _policy(unique, *pools, **spec))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert _errors(refused) == expected


async def test_rule_says_in_its_own_words_what_is_wrong(policies: Client, unique: str) -> None:
    refused = await policies.create(POLICIES, _policy(unique, {"driver": "NO_NAME"}))
    schema = yaml.safe_load(DEFINITION.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    pools = schema["properties"]["spec"]["properties"]["pools"]
    (rule,) = pools["items"]["properties"]["driver"]["x-kubernetes-validations"]
    (cause,) = refused.causes
    assert cause["message"] == f'Invalid value: "NO_NAME": {rule["message"].strip()}'


async def test_rules_are_not_checked_beside_other_errors(policies: Client, unique: str) -> None:
    refused = await policies.create(POLICIES, _policy(unique, {"driver": "NO_NAME"}, order="Random"))
    assert _errors(refused) == [("spec.order", "FieldValueNotSupported")]
    assert refused.causes[1:] == [
        {
            "reason": "FieldValueInvalid",
            "field": "<nil>",
            "message": (
                "Invalid value: null: some validation rules were not checked because the object was invalid;"
                " correct the existing errors to complete validation"
            ),
        }
    ]


async def test_policy_without_a_spec_is_invalid(policies: Client, unique: str) -> None:
    body = _policy(unique)
    del body["spec"]
    assert _errors(await policies.create(POLICIES, body)) == [("spec", "FieldValueRequired")]


async def test_name_of_a_policy_is_short(policies: Client, unique: str) -> None:
    refused = await policies.create(POLICIES, _policy(f"{unique}{'x' * 60}", GPUS))
    assert (refused.code, _errors(refused)) == (422, [("metadata.name", "FieldValueTooLong")])


async def test_one_driver_may_have_several_pools(policies: Client, unique: str) -> None:
    pools = [{**GPUS, "pool": "n1"}, {**GPUS, "pool": "rack/n2"}, {"driver": "nic.example.com"}]
    (await policies.create(POLICIES, _policy(unique, *pools))).ok()


async def test_unknown_fields_of_a_policy_are_pruned_with_a_warning(policies: Client, unique: str) -> None:
    made = (await policies.create(POLICIES, _policy(unique, {**GPUS, "node": "n1"}, ordre="x"))).ok()
    assert "ordre" not in made.body["spec"]
    assert "node" not in made.body["spec"]["pools"][0]
    refused = await policies.create(
        POLICIES, _policy(f"{unique}b", GPUS, ordre="x"), fieldValidation="Strict"
    )
    assert refused.code == 400
    assert refused.body["message"] == (
        'AllocationPolicy in version "v1alpha1" cannot be handled as a AllocationPolicy: strict decoding error:'
        ' unknown field "spec.ordre"'
    )


async def test_changed_policy_is_checked_again(policies: Client, unique: str) -> None:
    (await policies.create(POLICIES, _policy(unique, GPUS))).ok()
    refused = await policies.merge(f"{POLICIES}/{unique}", {"spec": {"pools": [{"driver": "NO_NAME"}]}})
    assert _errors(refused) == [("spec.pools[0].driver", "FieldValueInvalid")]
    changed = (await policies.merge(f"{POLICIES}/{unique}", {"spec": {"pools": [{"driver": "a"}]}})).ok()
    assert changed.meta["generation"] == 2
    assert changed.body["spec"]["pools"] == [{"driver": "a", "pool": ""}]


async def test_status_of_a_policy_is_checked_and_isolated(policies: Client, unique: str) -> None:
    made = (await policies.create(POLICIES, {**_policy(unique, GPUS), "status": {"pools": 7}})).ok()
    assert "status" not in made.body
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Enforced",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    path = f"{POLICIES}/{unique}/status"
    body = {"spec": {"order": "None"}, "status": {"pools": 2, "conditions": [condition]}}
    written = (await policies.merge(path, body)).ok()
    assert written.body["spec"] == made.body["spec"]
    assert written.body["status"] == {"pools": 2, "conditions": [condition]}
    assert written.meta["generation"] == 1
    for status, field in (
        ({"pools": "two"}, "status.pools"),
        ({"conditions": [{**condition, "status": "Maybe"}]}, "status.conditions[0].status"),
        ({"conditions": [condition, condition]}, "status.conditions[1]"),
        ({"conditions": [{"type": "Ready"}]}, "status.conditions[0].status"),
    ):
        refused = await policies.merge(path, {"status": status})
        assert refused.code == 422
        assert field in [cause["field"] for cause in refused.causes]


async def test_applied_pools_are_a_map_by_driver_and_pool(policies: Client, unique: str) -> None:
    """Two teams may each apply their pools to one policy."""
    for manager, pool in (("one", "n1"), ("two", "n2")):
        (await policies.apply(f"{POLICIES}/{unique}", _policy(unique, {**GPUS, "pool": pool}), manager)).ok()
    found = (await policies.get(f"{POLICIES}/{unique}")).body
    assert [item["pool"] for item in found["spec"]["pools"]] == ["n1", "n2"]
    (await policies.apply(f"{POLICIES}/{unique}", _policy(unique, {**GPUS, "pool": "n3"}), "one")).ok()
    found = (await policies.get(f"{POLICIES}/{unique}")).body
    assert sorted(item["pool"] for item in found["spec"]["pools"]) == ["n2", "n3"]


async def test_finalizer_of_a_policy_holds_it(policies: Client, unique: str) -> None:
    body = _policy(unique, GPUS)
    body["metadata"]["finalizers"] = ["dra-operator.io/policy"]
    (await policies.create(POLICIES, body)).ok()
    marked = (await policies.delete(f"{POLICIES}/{unique}")).ok()
    assert "deletionTimestamp" in marked.meta
    (await policies.merge(f"{POLICIES}/{unique}", {"metadata": {"finalizers": None}})).ok()
    assert (await policies.get(f"{POLICIES}/{unique}")).code == 404


async def test_field_selector_of_a_policy_is_its_name(policies: Client, unique: str) -> None:
    (await policies.create(POLICIES, _policy(unique, GPUS))).ok()
    found = (await policies.get(POLICIES, fieldSelector=f"metadata.name={unique}")).ok().body
    assert [(item["kind"], item["metadata"]["name"]) for item in found["items"]] == [
        ("AllocationPolicy", unique)
    ]
    refused = await policies.get(POLICIES, fieldSelector="spec.order=FirstFit")
    assert (refused.code, refused.body["message"]) == (400, "field label not supported: spec.order")
