"""What holds in every tier: programs that tests start keep nothing in the home of whoever runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def kubectl_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A kubectl remembers what servers serve, by address: of no use for servers on free ports, and misleading when a port comes again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECACHEDIR", str(tmp_path_factory.mktemp("kubectl")))
        yield
