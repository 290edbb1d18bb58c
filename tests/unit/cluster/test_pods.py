"""Pods by claim, template, node and gate, and what their claim entries mean (cp C-2…C-13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster, Resolution

from .build import claim, owner, pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import PodClaim
    from dra_operator.model import Pod

DIRECT = {"name": "entry", "resourceClaimName": "c"}
TEMPLATE = {"name": "entry", "resourceClaimTemplateName": "t"}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def names(pods: Iterable[Pod]) -> list[str]:
    return [found.metadata.name for found in pods]


def recorded(name: str | None, entry: str = "entry") -> dict[str, Any]:
    """A pod status that records a generated claim."""
    return {
        "resourceClaimStatuses": [{"name": entry} | ({} if name is None else {"resourceClaimName": name})]
    }


def only_entry(cluster: Cluster, subject: Pod) -> PodClaim:
    (found,) = cluster.claims_of_pod(subject)
    return found


class TestIndexes:
    """Look-ups that follow every change of a pod."""

    def test_pods_are_found_by_the_claims_they_name(self, cluster: Cluster) -> None:
        """Direct names, recorded names of generated claims, the special claim (cp C-4c, C-10)."""
        cluster.apply("ADDED", pod("direct", spec={"resourceClaims": [DIRECT]}))
        cluster.apply("ADDED", pod("generated", spec={"resourceClaims": [TEMPLATE]}, status=recorded("c")))
        special = {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}
        cluster.apply("ADDED", pod("extended", status=special))
        cluster.apply("ADDED", pod("waiting", spec={"resourceClaims": [TEMPLATE]}))

        assert names(cluster.pods_of_claim("ns/c")) == ["direct", "extended", "generated"]
        assert names(cluster.pods_of_claim("other/c")) == []

    def test_a_claim_name_that_is_recorded_later_is_found_then(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", pod("p", 1, {"resourceClaims": [TEMPLATE]}))
        assert names(cluster.pods_of_claim("ns/c")) == []

        cluster.apply("MODIFIED", pod("p", 2, {"resourceClaims": [TEMPLATE]}, recorded("c")))

        assert names(cluster.pods_of_claim("ns/c")) == ["p"]

    def test_pods_are_found_by_template(self, cluster: Cluster) -> None:
        """By cp C-7."""
        cluster.apply("ADDED", pod("p", spec={"resourceClaims": [TEMPLATE]}))

        assert names(cluster.pods_of_template("ns/t")) == ["p"]

    def test_a_pod_that_is_gone_is_found_nowhere(self, cluster: Cluster) -> None:
        spec = {"resourceClaims": [DIRECT, TEMPLATE], "nodeName": "n1"}
        cluster.apply("ADDED", pod("p", 1, spec))
        cluster.apply("DELETED", pod("p", 2, spec))

        found = [
            cluster.pods_of_claim("ns/c"),
            cluster.pods_of_template("ns/t"),
        ]
        assert found == [(), ()]

    def test_a_pod_is_found_by_uid_and_never_its_namesake(self, cluster: Cluster) -> None:
        cluster.apply("ADDED", pod("p", 1, uid="old"))
        cluster.apply("ADDED", pod("p", 2, uid="new"))

        assert cluster.pod("old") is None
        assert cluster.pod("new") == pod("p", 2, uid="new")


class TestResolution:
    """What an entry of `spec.resourceClaims` means."""

    def test_a_direct_name_needs_no_owner(self, cluster: Cluster) -> None:
        """By cp C-10.1."""
        cluster.apply("ADDED", claim("c"))

        found = only_entry(cluster, pod("p", spec={"resourceClaims": [DIRECT]}))

        assert (found.resolution, found.claim, found.must_check_owner) == (
            Resolution.FOUND,
            claim("c"),
            False,
        )
        assert (found.claim_key, found.message) == ("ns/c", "")

    def test_a_direct_name_without_a_claim_is_missing(self, cluster: Cluster) -> None:
        found = only_entry(cluster, pod("p", spec={"resourceClaims": [DIRECT]}))

        assert found.resolution is Resolution.MISSING
        assert found.message == 'resourceclaim.resource.k8s.io "c" not found'

    def test_a_template_without_a_record_is_not_created_yet(self, cluster: Cluster) -> None:
        """By cp C-10.2; a record of another entry does not help."""
        subject = pod("p", spec={"resourceClaims": [TEMPLATE]}, status=recorded("c", "another"))

        found = only_entry(cluster, subject)

        assert (found.resolution, found.claim_key) == (Resolution.NOT_CREATED, None)
        assert found.message == 'pod "ns/p": ResourceClaim not created yet'

    def test_a_record_without_a_name_means_that_none_is_needed(self, cluster: Cluster) -> None:
        """By cp C-43."""
        found = only_entry(cluster, pod("p", spec={"resourceClaims": [TEMPLATE]}, status=recorded(None)))

        assert (found.resolution, found.message) == (Resolution.NOT_NEEDED, "")

    def test_a_generated_claim_belongs_to_its_pod(self, cluster: Cluster) -> None:
        """By cp C-11."""
        cluster.apply("ADDED", claim("c", ownerReferences=[owner("uid-p")]))

        found = only_entry(cluster, pod("p", spec={"resourceClaims": [TEMPLATE]}, status=recorded("c")))

        assert (found.resolution, found.must_check_owner) == (Resolution.FOUND, True)

    @pytest.mark.parametrize("owners", [[], [owner("uid-other")], [owner("uid-p") | {"controller": False}]])
    def test_a_claim_of_that_name_with_another_owner_is_foreign(
        self, cluster: Cluster, owners: list[dict[str, Any]]
    ) -> None:
        """By cp C-11."""
        cluster.apply("ADDED", claim("c", ownerReferences=owners))

        found = only_entry(cluster, pod("p", spec={"resourceClaims": [TEMPLATE]}, status=recorded("c")))

        assert found.resolution is Resolution.FOREIGN
        assert found.message == "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)"

    def test_an_entry_of_an_api_newer_than_ours_is_not_guessed_at(self, cluster: Cluster) -> None:
        """By cp C-10.3."""
        found = only_entry(cluster, pod("p", spec={"resourceClaims": [{"name": "entry"}]}))

        assert found.resolution is Resolution.UNKNOWN
        assert found.message == 'pod "ns/p", spec.resourceClaim "entry": none of the supported fields are set'

    def test_a_claim_that_is_being_deleted_is_found_with_a_reason_to_wait(self, cluster: Cluster) -> None:
        """By cp S-1."""
        cluster.apply("ADDED", claim("c", deletionTimestamp="2026-01-01T00:00:00Z"))

        found = only_entry(cluster, pod("p", spec={"resourceClaims": [DIRECT]}))

        assert (found.resolution, found.message) == (Resolution.FOUND, 'resourceclaim "c" is being deleted')

    def test_entries_keep_their_order(self, cluster: Cluster) -> None:
        entries = [{"name": name, "resourceClaimName": name} for name in ("z", "a")]

        found = cluster.claims_of_pod(pod("p", spec={"resourceClaims": entries}))

        assert [item.entry.name for item in found] == ["z", "a"]
