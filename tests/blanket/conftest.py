"""What the tests of blankets share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Linear algebra on one thread, as ``Search.find`` runs it: the systems are small, and more
    threads only wait.
    """
    with threadpool_limits(1):
        yield
