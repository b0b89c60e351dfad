"""A run that is interrupted anywhere and resumed ends with the same bits as one that was not."""

from pathlib import Path

import pytest
import torch
from torch import nn

from degem.checkpoint import Checkpoints
from degem.errors import DegemError
from degem.training import train


class Run:
    """A small run with everything that a checkpoint must hold: dropout, BatchNorm, Adam, a generator, a buffer."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), weight_decay=0.1)
        self.generator = torch.Generator().manual_seed(1)
        self.buffer = torch.zeros(16, 3)

    @property
    def parts(self) -> dict[str, nn.Module | torch.optim.Optimizer | torch.Generator | torch.Tensor]:
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "generator": self.generator,
            "buffer": self.buffer,
        }

    def step(self, index: int) -> dict[str, float]:
        self.buffer += torch.randn(16, 3, generator=self.generator)
        loss = self.model(self.buffer).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.item()}

    def interrupted_at(self, stop: int):
        def step(index: int) -> dict[str, float]:
            if index == stop:
                raise KeyboardInterrupt
            return self.step(index)

        return step


def same_bits(first: Run, second: Run) -> bool:
    pairs = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    return torch.equal(first.buffer, second.buffer) and all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("stop", [0, 1, 7, 11])
def test_resumed_equals_uninterrupted(tmp_path: Path, stop: int) -> None:
    whole = Run()
    expected = train(whole.step, 12)["loss"]
    broken = Run()
    with pytest.raises(KeyboardInterrupt):
        train(
            broken.interrupted_at(stop), 12, checkpoints=Checkpoints(tmp_path / "c", "k", every=0), parts=broken.parts
        )
    resumed = Run()
    checkpoints = Checkpoints(tmp_path / "c", "k", resume=True)
    history = train(resumed.step, 12, checkpoints=checkpoints, parts=resumed.parts)
    assert history["loss"] == expected
    assert same_bits(resumed, whole)


def test_a_finished_phase_is_restored_without_a_step(tmp_path: Path) -> None:
    first = Run()
    train(first.step, 3, checkpoints=Checkpoints(tmp_path, "k", every=0), parts=first.parts)
    second = Run()
    history = train(
        second.interrupted_at(0), 3, checkpoints=Checkpoints(tmp_path, "k", resume=True), parts=second.parts
    )
    assert len(history["loss"]) == 3
    assert same_bits(first, second)


def test_another_fit_is_refused_and_a_new_one_starts_empty(tmp_path: Path) -> None:
    run = Run()
    train(run.step, 2, checkpoints=Checkpoints(tmp_path / "c", "one", every=0), parts=run.parts)
    with pytest.raises(DegemError, match="another fit"):
        Checkpoints(tmp_path / "c", "two", resume=True).restore("train", run.parts)
    Checkpoints(tmp_path / "c", "two")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("content", [b"", b"not tensors at all", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_checkpoint_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "train.checkpoint").write_bytes(content)
    with pytest.raises(DegemError, match=r"train\.checkpoint is no checkpoint"):
        Checkpoints(tmp_path, "k", resume=True).restore("train", {})


def test_checkpoints_wait_for_their_time(tmp_path: Path) -> None:
    assert not Checkpoints(tmp_path, "k", every=1000).due()
    assert Checkpoints(tmp_path, "k", every=0).due()


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").touch()
    (tmp_path / "old.checkpoint").touch()
    checkpoints = Checkpoints(tmp_path, "key")
    assert [file.name for file in tmp_path.iterdir()] == ["precious.txt"]
    checkpoints.save("train", 1, {"value": torch.zeros(1)}, {})
    checkpoints.remove()
    assert [file.name for file in tmp_path.iterdir()] == ["precious.txt"]


def test_slow_checkpoints_are_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("degem.checkpoint.time.monotonic", lambda: now[0])

    def slow(*_: object) -> bytes:
        now[0] += 10
        return b""

    monkeypatch.setattr("degem.checkpoint.save", slow)
    checkpoints = Checkpoints(tmp_path, "key", every=1.0)
    now[0] = 1.0
    assert checkpoints.due()
    checkpoints.save("train", 1, {}, {})
    now[0] += 999
    assert not checkpoints.due()
    now[0] += 1
    assert checkpoints.due()


def test_a_short_run_writes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("degem.checkpoint.time.monotonic", lambda: now[0])

    def step(index: int) -> dict[str, float]:
        now[0] += 1
        return {"loss": 0.0}

    checkpoints = Checkpoints(tmp_path / "c", "key")
    train(step, 4, checkpoints=checkpoints)
    assert not (tmp_path / "c").exists()
    train(step, 2, checkpoints=checkpoints)
    assert [file.name for file in (tmp_path / "c").iterdir()] == ["train.checkpoint"]
