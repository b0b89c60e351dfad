import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from degem import model_file
from degem.errors import ModelFileError

STATE = {"weight": torch.arange(6.0).reshape(2, 3), "steps": torch.tensor(7)}
DESCRIPTION = {"method": "any", "loss": [0.1, float("nan")], "size": np.int64(3)}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "deep" / "model"
    model_file.write(path, STATE, DESCRIPTION)
    return path


def tensors_of(model):
    return next(model.glob("*.safetensors"))


def test_what_is_written_comes_back(model):
    state, about = model_file.read(model)
    assert {name: tensor.tolist() for name, tensor in state.items()} == {
        name: tensor.tolist() for name, tensor in STATE.items()
    }
    assert about["method"] == "any"
    assert about["size"] == 3
    assert set(about["versions"]) == {"degem", "torch", "numpy"}
    assert sorted(path.name for path in model.iterdir()) == [".lock", "model.json", tensors_of(model).name]


def test_views_and_shared_tensors_can_be_written(tmp_path):
    base = torch.arange(6.0).reshape(2, 3)
    model_file.write(tmp_path / "m", {"a": base.T, "b": base, "c": base[0]}, {})
    state, _ = model_file.read(tmp_path / "m")
    assert torch.equal(state["a"], base.T)
    assert torch.equal(state["c"], base[0])


def test_settings_are_written_as_json_knows_them(tmp_path):
    @dataclasses.dataclass
    class Inner:
        rate: float = 0.5

    model_file.write(tmp_path / "m", {}, {"inner": Inner(), "by_number": {10: "x", 9: "y"}})
    about = model_file.read_metadata(tmp_path / "m")
    assert about["inner"] == {"rate": 0.5}
    assert about["by_number"] == {"10": "x", "9": "y"}
    with pytest.raises(TypeError, match="object has no place"):
        model_file.write(tmp_path / "m", {}, {"thing": object()})


def test_a_second_model_replaces_the_first(model):
    model_file.write(model, {"weight": torch.zeros(1)}, {"method": "other"})
    state, about = model_file.read(model)
    assert state["weight"].tolist() == [0]
    assert about["method"] == "other"
    assert len(list(model.iterdir())) == 3  # the lock too


# -- what is refused ---------------------------------------------------------------------------------------------


def test_no_model(tmp_path):
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(ModelFileError, match=r"no model\.json"):
            model_file.read(path)


@settings(max_examples=50)
@given(data=st.data())
def test_no_altered_byte_is_missed(tmp_path_factory, data):
    model = tmp_path_factory.mktemp("models") / "m"
    model_file.write(model, STATE, DESCRIPTION)
    victim = tensors_of(model)
    content = bytearray(victim.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    victim.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="truncated or altered"):
        model_file.read(model)


@pytest.mark.parametrize("length", [0, 10, -1])
def test_truncated_tensors(model, length):
    victim = tensors_of(model)
    victim.write_bytes(victim.read_bytes()[:length])
    with pytest.raises(ModelFileError, match="truncated or altered"):
        model_file.read(model)


def test_missing_tensors(model):
    tensors_of(model).unlink()
    with pytest.raises(ModelFileError, match="cannot be read"):
        model_file.read(model)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_description_that_is_no_json(model, content):
    (model / "model.json").write_bytes(content)
    with pytest.raises(ModelFileError, match="cannot be read"):
        model_file.read(model)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "another"}, "altered"),
        ({"checksum": "0" * 64}, "altered"),
        ({"about_checksum": None}, "altered"),
        (
            {"format_version": model_file.FORMAT_VERSION + 1},
            f"format version {model_file.FORMAT_VERSION + 1}, this degem reads {model_file.FORMAT_VERSION}",
        ),
        ({"format_version": "x"}, "format version x"),
        ({"format": "layers-model"}, "does not describe a degem model"),
    ],
)
def test_an_altered_newer_or_foreign_description(model, changes, reason):
    about = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps(about | changes))
    with pytest.raises(ModelFileError, match=reason):
        model_file.read(model)


@pytest.mark.parametrize("content", ["[]", "3", "null"])
def test_a_description_of_something_else(model, content):
    (model / "model.json").write_text(content)
    with pytest.raises(ModelFileError, match="does not describe"):
        model_file.read(model)


def test_a_right_checksum_does_not_make_safetensors(model):
    about = json.loads((model / "model.json").read_text())
    del about["about_checksum"]
    about["checksum"] = hashlib.sha256(b"pickle").hexdigest()
    about["about_checksum"] = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    (model / "model.json").write_text(json.dumps(about))
    (model / f"state-{about['checksum'][:16]}.safetensors").write_bytes(b"pickle")
    with pytest.raises(ModelFileError, match="not a safetensors file"):
        model_file.read(model)


@pytest.mark.parametrize("name", ["notes.txt", "model.json"])
def test_other_peoples_folders_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("dear diary")
    with pytest.raises(ModelFileError, match="not a model folder"):
        model_file.write(tmp_path, STATE, DESCRIPTION)
    with pytest.raises(ModelFileError, match="not a model folder"):
        model_file.write(tmp_path / name, STATE, DESCRIPTION)
    assert (tmp_path / name).read_text() == "dear diary"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError, match="cannot be written"):
        model_file.write(tmp_path / "file" / "model", STATE, DESCRIPTION)


# -- crashes -----------------------------------------------------------------------------------------------------

STEPS = 7  # open, fsync and rename of two files, then the old tensors' removal


def crash_at(monkeypatch, step):
    """Every call that touches the disk counts one; the one numbered ``step`` does not happen."""
    done = []

    def counted(function, matters=lambda *_: True):
        def call(*arguments, **keywords):
            if matters(*arguments):
                if len(done) == step:
                    raise KeyboardInterrupt
                done.append(function)
            return function(*arguments, **keywords)

        return call

    monkeypatch.setattr(os, "fsync", counted(os.fsync))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    monkeypatch.setattr(tempfile, "mkdtemp", counted(tempfile.mkdtemp))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink, lambda path, *_: path.suffix == ".safetensors"))
    return done


@pytest.mark.parametrize("step", range(STEPS))
def test_a_crash_leaves_the_old_model_or_the_new_one(model, monkeypatch, step):
    with monkeypatch.context() as patch:
        crash_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            model_file.write(model, {"weight": torch.zeros(1)}, {"method": "new"})
    state, about = model_file.read(model)
    assert (about["method"], state["weight"].numel()) == (("any", 6) if step < 6 else ("new", 1))
    model_file.write(model, {"weight": torch.ones(1)}, {"method": "newest"})
    assert model_file.read(model)[1]["method"] == "newest"
    assert len(list(model.iterdir())) == 3  # the lock too


@pytest.mark.parametrize("step", range(STEPS - 1))
def test_a_crash_where_no_model_was_leaves_none(tmp_path, monkeypatch, step):
    model = tmp_path / "model"
    with monkeypatch.context() as patch:
        crash_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            model_file.write(model, STATE, DESCRIPTION)
    with pytest.raises(ModelFileError, match=r"no model\.json"):
        model_file.read(model)
    model_file.write(model, STATE, DESCRIPTION)
    assert model_file.read(model)[1]["method"] == "any"


def test_the_crashes_above_cover_every_step(model, monkeypatch):
    with monkeypatch.context() as patch:
        done = crash_at(patch, 1000)
        model_file.write(model, {"weight": torch.zeros(1)}, {"method": "new"})
    assert len(done) == STEPS


def test_a_power_cut_leaves_parts_that_the_next_save_clears(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "state-0123456789abcdef.safetensors").write_bytes(b"half")
    model_file.write(model, STATE, DESCRIPTION)
    assert len(list(model.iterdir())) == 3  # the lock too


def test_the_error_for_another_methods_model():
    assert "use Detector.load" in str(model_file.foreign("m", "knn", "DeGEM"))
    assert "import its class" in str(model_file.foreign("m", "mine", "Detector"))


def test_links_in_a_model_folder_are_not_followed(model, tmp_path):
    (tmp_path / "mine").write_text("dear diary")
    (model / "model.json").unlink()
    for name in ("model.json", "model.json.part", tensors_of(model).name + ".part"):
        (model / name).symlink_to(tmp_path / "mine")
    model_file.write(model, STATE, DESCRIPTION)
    assert (tmp_path / "mine").read_text() == "dear diary"
    assert model_file.read(model)[1]["method"] == "any"


def test_only_regular_files_are_read(model):
    (model / "model.json").unlink()
    os.mkfifo(model / "model.json")
    with pytest.raises(ModelFileError, match="not a regular file"):
        model_file.read(model)


def test_staging_of_a_killed_saver_is_swept(model):
    (model / ".degem-staging-x").mkdir()
    (model / ".degem-staging-x" / "file").write_text("half")
    model_file.write(model, STATE, DESCRIPTION)
    assert not (model / ".degem-staging-x").exists()


SAVER = """
import sys, torch
from pathlib import Path
from degem import model_file
for turn in range(200):
    model_file.write(Path(sys.argv[1]), {"w": torch.full((50,), float(turn + int(sys.argv[2])))}, {"method": "m"})
"""


def test_two_savers_break_nothing(tmp_path):
    model = tmp_path / "m"
    savers = [subprocess.Popen([sys.executable, "-c", SAVER, str(model), start]) for start in ("0", "1000")]
    assert [saver.wait(120) for saver in savers] == [0, 0]
    assert model_file.read(model)[0]["w"].shape == (50,)
