"""A feed that stands still, for scenarios in which the model knows less than the server has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.controllers.sink import ModelSink

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from dra_operator.model import Value


class Lag:
    """The feed of one kind stands still while `holds`."""

    def __init__(self, patcher: pytest.MonkeyPatch, kind: str) -> None:
        self.holds = False
        apply, take = ModelSink.apply, ModelSink.take

        def slow_apply(sink: ModelSink, event: str, obj: Value) -> None:
            if not (self.holds and type(obj).__name__ == kind):
                apply(sink, event, obj)

        def slow_take(sink: ModelSink, which: str, event: str | None, raw: Mapping[str, Any]) -> None:
            if not (self.holds and which == kind):
                take(sink, which, event, raw)

        patcher.setattr(ModelSink, "apply", slow_apply)
        patcher.setattr(ModelSink, "take", slow_take)
