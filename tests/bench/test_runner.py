import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from degem.bench import runner, worker
from degem.bench.specs import Task, Variant
from degem.bench.store import Row, Store
from degem.bench.worker import failed, key_of
from degem.errors import DegemError
from degem.shifts.scenarios import kind_of


def tasks(*methods: str, seeds: tuple[int, ...] = (0,)) -> list[Task]:
    shifts = ("structure", "feature", "label")
    return [
        Task(Variant(m, m), "cornell", shift, seed, "strict", 1.0)
        for m in methods
        for shift in shifts
        for seed in seeds
    ]


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path / "cache"))


def test_a_run_fills_the_store_and_a_second_run_skips_it(tmp_path: Path, data_dir: Path) -> None:
    heard: list[Row] = []
    todo = tasks("degree", "norm", seeds=(0, 1))
    status = runner.run(todo, tmp_path, data_dir=data_dir, workers=2, listener=lambda _, new: heard.extend(new))
    rows = Store(tmp_path).rows()
    assert len(rows) == len(heard) == status.total == 12
    assert not any(row.error for row in rows)
    assert {(row.shift, row.seed) for row in rows} == {
        (s, n) for s in ("structure", "feature", "label") for n in (0, 1)
    }
    again = runner.run([*todo, *tasks("nonzeros")], tmp_path, data_dir=data_dir)
    assert (again.skipped, again.total, len(Store(tmp_path).rows())) == (12, 3, 15)


def test_rows_of_another_run_into_the_same_store_are_not_counted(tmp_path: Path, data_dir: Path) -> None:
    strangers = tasks("norm")

    def interfere(status: runner.Status, new: object) -> None:
        if strangers:
            Store(tmp_path).append([failed(strangers.pop(), "of another run")])

    status = runner.run(tasks("degree"), tmp_path, data_dir=data_dir, workers=1, listener=interfere)
    assert [row.method for row in status.rows] == ["degree"] * 3
    assert len(Store(tmp_path).rows()) > 3


def test_other_parameters_or_versions_are_not_done(tmp_path: Path) -> None:
    (task, *_) = tasks("msp")
    store = Store(tmp_path)
    key = key_of(task)
    row = Row(*key[:3], 0, "strict", 1, 1, 1, 1, 1, 1, 1, version=key[5], parameters=key[6])  # type: ignore[arg-type]
    store.append([row])
    assert runner.pending([task], store) == []
    other = Task(Variant("msp", "msp", {"num_epochs": 3}), "cornell", task.shift, 0, "strict", 1.0)
    fewer = Task(task.variant, "cornell", task.shift, 0, "strict", 0.5)
    oracle = Task(task.variant, "cornell", task.shift, 0, "oracle", 1.0)
    assert runner.pending([other, fewer, oracle], store) == [other, fewer, oracle]


def test_another_version_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (task, *_) = tasks("msp")
    key = key_of(task)
    Store(tmp_path).append([Row(*key[:3], 0, "strict", *(1,) * 7, version=key[5], parameters=key[6])])  # type: ignore[arg-type]
    monkeypatch.setattr(worker, "version", lambda _: "99")
    assert runner.pending([task], Store(tmp_path)) == [task]


def test_a_worker_killed_again_is_recorded_again_and_the_run_goes_on(tmp_path: Path, data_dir: Path) -> None:
    killed: list[int] = []

    def kill_once(status: runner.Status, new: object) -> None:
        if not killed:
            killed.append(_children()[0])
            os.kill(killed[0], signal.SIGKILL)

    todo = [*tasks("degem", seeds=(0,)), *tasks("degree", seeds=(1,))]
    slow = [Task(Variant("degem", "degem", {"num_epochs": 100_000}), *_place(task)) for task in todo[:1]]
    Store(tmp_path).append([failed(task, "killed the first time") for task in slow])
    runner.run([*slow, *todo[3:]], tmp_path, data_dir=data_dir, workers=1, listener=kill_once)
    first, *rows = Store(tmp_path).rows()
    assert first.error == "killed the first time"
    assert [row.method for row in rows] == ["degem", "degree", "degree", "degree"]
    assert "signal 9" in rows[0].error
    assert not any(row.error for row in rows[1:])


def _place(task: Task) -> tuple[str, str, int, str, float]:
    return task.dataset, task.shift, task.seed, task.protocol, task.label_rate


def _children() -> list[int]:
    """Grandchildren of this process: those that the fork server started."""
    servers = _offspring(os.getpid())
    return [child for server in servers for child in _offspring(server)]


def _offspring(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_run_into_what_is_no_folder_starts_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(runner, "fork_server", lambda *_: pytest.fail("a worker was about to start"))
    with pytest.raises(DegemError, match="file cannot be a folder"):
        runner.run(tasks("degree"), tmp_path / "file")


def test_groups_share_a_training_graph() -> None:
    groups = runner.grouped(tasks("degree", "norm", seeds=(0, 1)))
    assert [(kind_of(group[0].shift), group[0].seed, len(group)) for group in groups] == [
        ("manipulation", 0, 4),
        ("manipulation", 1, 4),
        ("label", 0, 2),
        ("label", 1, 2),
    ]


def test_absent_datasets_are_known_without_reading(tmp_path: Path, data_dir: Path) -> None:
    assert set(runner.absent_datasets(["cora", "twitch", "synthetic-cora-0.2"], tmp_path)) == {
        "cora",
        "twitch",
        "synthetic-cora-0.2",
    }
    assert set(runner.absent_datasets(["cora", "twitch", "arxiv"], data_dir)) == {"arxiv"}


TWO_RUNS = """
import sys
from pathlib import Path
from degem.bench import runner
from degem.bench.specs import Task, Variant
places = [(shift, seed) for shift in ("structure", "feature", "label") for seed in (0, 1, 2)]
tasks = [Task(Variant(m, m), "cornell", *place, "strict", 1.0) for m in ("degree", "norm") for place in places]
if __name__ == "__main__":
    runner.run(tasks, Path(sys.argv[1]), data_dir=Path(sys.argv[2]), workers=1)
"""


def test_two_runs_into_one_store_do_no_cell_twice(tmp_path: Path, data_dir: Path) -> None:
    (tmp_path / "run.py").write_text(TWO_RUNS)
    command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "store"), str(data_dir)]
    runs = [subprocess.Popen(command) for _ in range(2)]
    assert [run.wait(300) for run in runs] == [0, 0]
    rows = Store(tmp_path / "store").rows()
    assert len(rows) == len({row.key for row in rows}) == 18
    assert not any(row.error for row in rows)
