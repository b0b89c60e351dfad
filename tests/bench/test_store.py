import csv
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from degem.bench.store import COLUMNS, Row, Store
from degem.errors import DegemError

ROW = Row("msp", "cora", "label", 0, "strict", 91.0, 78.0, 43.0, float("nan"), 1.0, 0.1, 300.0, "1", '{"a": "b, c"}')


def test_rows_come_back_and_the_columns_are_the_documented_ones(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([ROW, replace(ROW, seed=1, error='went\nwrong, "badly"')])
    first, second = store.rows()
    assert math.isnan(first.acc)
    assert replace(first, acc=0.0) == replace(ROW, acc=0.0)
    assert second.error == 'went wrong, "badly"'
    with (tmp_path / "results.csv").open() as file:
        header = next(csv.reader(file))
    places, figures = "method dataset shift seed protocol", "auroc aupr fpr95 acc fit_seconds score_seconds peak_mib"
    assert " ".join(header) == f"{places} {figures} version parameters error false_alarm found"
    assert tuple(header) == COLUMNS


def test_half_a_line_is_no_row_and_is_gone_after_the_next(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([ROW, replace(ROW, seed=1)])
    whole = store.path.read_bytes()
    for cut in range(1, len(whole.splitlines()[-1])):
        store.path.write_bytes(whole[:-cut])
        assert [row.seed for row in store.rows()] == [0]
        store.append([replace(ROW, seed=2)])
        assert [row.seed for row in store.rows()] == [0, 2]


ROW_LINE = ",".join(COLUMNS).encode() + b"\nmsp,cora,label,0,strict" + b",1" * 8 + b",{},,,\n"


def test_a_line_is_a_row_whatever_else_ends_a_line_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_bytes(ROW_LINE.replace(b"cora", "co\u2028ra\x0b".encode()))
    assert [row.dataset for row in Store(tmp_path).rows()] == ["co\u2028ra\x0b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"hello\n", "first line is 'hello'"),
        (b"method,dataset\nmsp,cora\n", "first line is 'method,dataset'"),
        (b"\xff\xfe\n", "no store of results"),
        (",".join(COLUMNS).encode() + b"\nmsp,cora,label,0,str\n", "line 2 is no row of results"),
        (",".join(COLUMNS).encode() + b"\nmsp,cora,label,zero" + b"," * 11 + b"\n", "line 2 is no row of results"),
        (ROW_LINE.replace(b"{}", b"a" * 200_000), "line 2 is no row of results"),
        (ROW_LINE.replace(b"{}", b"[" * 90_000), "line 2 is no row of results"),
        (ROW_LINE.replace(b"{}", b"[1]"), "line 2 is no row of results"),
        (ROW_LINE.replace(b"{}", b'{"set": 1}'), "line 2 is no row of results"),
        (ROW_LINE.replace(b"cora", b"\xff"), "line 2 is no row of results"),
        (ROW_LINE.replace(b"cora", b'"cora'), "line 2 is no row of results"),
    ],
)
def test_a_foreign_or_damaged_file_is_named_with_its_line(tmp_path: Path, text: bytes, told: str) -> None:
    (tmp_path / "results.csv").write_bytes(text)
    with pytest.raises(DegemError) as caught:
        Store(tmp_path).rows()
    assert told in str(caught.value)
    assert str(tmp_path / "results.csv") in str(caught.value)


def test_a_folder_that_cannot_be_is_known_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DegemError, match="choose another"):
            Store(folder).prepare()
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(DegemError, match="cannot be written"):
        Store(tmp_path).prepare()


def test_a_good_row_is_not_replaced_by_a_failed_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([replace(ROW, error="first try"), ROW, replace(ROW, error="third try")])
    assert [row.error for row in store.latest().values()] == [""]
    changed = replace(ROW, parameters="{}")
    store.append([changed])
    assert len(store.latest()) == 2


def test_rows_survive_kill_9(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        from dataclasses import replace
        from pathlib import Path
        from degem.bench.store import Row, Store
        row = Row("m", "d", "s", 0, "strict", 1, 1, 1, 1, 1, 1, 1, "1", '{{"x": "' + "x" * 3000 + '"}}')
        for seed in range(100_000):
            Store(Path({str(tmp_path)!r})).append([replace(row, seed=seed)])
            print(seed, flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(20):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    said = [int(line) for line in process.stdout.read().split()]
    process.wait()
    time.sleep(0)
    seeds = [row.seed for row in Store(tmp_path).rows()]
    assert seeds == list(range(len(seeds)))
    assert len(seeds) > max(said, default=19)


def test_two_processes_can_append(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import sys
        from dataclasses import replace
        from pathlib import Path
        from degem.bench.store import Row, Store
        row = Row(sys.argv[1], "d", "s", 0, "strict", 1, 1, 1, 1, 1, 1, 1, "1", '{{"x": "' + "x" * 20000 + '"}}')
        for seed in range(30):
            Store(Path({str(tmp_path)!r})).append([replace(row, seed=seed)])
        """
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, name]) for name in ("a", "b")]
    assert [process.wait() for process in processes] == [0, 0]
    rows = Store(tmp_path).rows()
    assert sorted((row.method, row.seed) for row in rows) == [(m, s) for m in "ab" for s in range(30)]
