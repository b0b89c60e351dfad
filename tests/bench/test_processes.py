"""Workers share the cores, within what the environment allows."""

import pytest

from degem.bench import processes


@pytest.mark.parametrize(
    ("workers", "allowed", "expected"),
    [(None, None, (4, 1)), (1, None, (1, 4)), (2, None, (2, 2)), (9, None, (4, 1)), (1, "1", (1, 1)), (2, "8", (2, 2))],
)
def test_threads_keep_to_cores_and_to_the_environment(
    workers: int | None, allowed: str | None, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 4)
    if allowed is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert processes.shares(workers) == expected
