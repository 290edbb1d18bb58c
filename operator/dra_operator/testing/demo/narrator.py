"""Tells what happens to pods, as the API shows it: served, waiting and why, gone and what that set free.

Listens to the mirror. Level-triggered: after every change it looks at the whole, and says what it has not said yet, since pods,
claims and events come by different watches in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .facts import Held, Obj, claims_of, devices_of, held_by, in_words, key_of, node_of, phase_of, uid_of

if TYPE_CHECKING:
    from .mirror import Mirror
    from .screen import Screen

COMPONENT = "dra-operator"


@dataclass(slots=True)
class Story:
    """What is known to the audience about one pod.

    Attributes:
        pod: `namespace/name`.
        node, devices: where it runs, and with what; empty while it does not.
        claims: uids of the claims that these devices were allocated to.
        waits: the latest reason to wait that was told; empty if there was none.
        is_gone: whether it was told that the pod is gone and its devices came free.
    """

    pod: str
    node: str = ""
    devices: tuple[Held, ...] = ()
    claims: frozenset[str] = frozenset()
    waits: str = ""
    is_gone: bool = False


class Narrator:
    """Remembers what was told, for the final table too."""

    def __init__(self, mirror: Mirror, screen: Screen) -> None:
        self._mirror = mirror
        self._screen = screen
        self.stories: dict[str, Story] = {}
        mirror.listen(self.look)

    def look(self) -> None:
        """Tell the news."""
        for pod in list(self._mirror.pods.values()):
            self._served(pod)
        for event in list(self._mirror.events.values()):
            self._waits(event)
        for story in self.stories.values():
            self._gone(story)

    def _story(self, pod_key: str) -> Story:
        return self.stories.setdefault(pod_key, Story(pod_key))

    def _served(self, pod: Obj) -> None:
        story = self._story(key_of(pod))
        devices = devices_of(pod, self._mirror.claims)
        if story.node or phase_of(pod) != "Running" or not devices:
            return
        story.node, story.devices = node_of(pod), devices
        story.claims = frozenset(uid_of(claim) for claim in claims_of(pod, self._mirror.claims))
        self._screen.news(f"pod {story.pod} → {story.node}: {in_words(devices)}")

    def _waits(self, event: Obj) -> None:
        about = event["involvedObject"]
        if event.get("type") != "Warning" or about["kind"] != "Pod" or not _is_ours(event):
            return
        story = self._story(f"{about['namespace']}/{about['name']}")
        if event["message"] != story.waits:
            story.waits = event["message"]
            self._screen.news(f"pod {story.pod} waits ({event['reason']}): {event['message']}")

    def _gone(self, story: Story) -> None:
        if story.is_gone or story.pod in self._mirror.pods or not story.devices:
            return
        holding = {uid_of(claim) for claim in self._mirror.claims.values() if held_by(claim)}
        if not story.claims & holding:
            story.is_gone = True
            self._screen.news(
                f"pod {story.pod} is gone; came free on {story.node}: {in_words(story.devices)}"
            )


def _is_ours(event: Obj) -> bool:
    return COMPONENT in {event.get("source", {}).get("component"), event.get("reportingComponent")}
