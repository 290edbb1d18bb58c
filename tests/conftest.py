"""What holds in every tier: programs that tests start keep nothing in the home of whoever runs them, and Hypothesis tries the same examples each time.

`pytest --hypothesis-profile=anew` tries others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("anew", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("fixed")


@pytest.fixture(scope="session", autouse=True)
def kubectl_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A kubectl remembers what servers serve, by address: of no use for servers on free ports, and misleading when a port comes again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECACHEDIR", str(tmp_path_factory.mktemp("kubectl")))
        yield
