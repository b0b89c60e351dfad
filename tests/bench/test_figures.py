import json
from pathlib import Path

from degem.bench import figures
from degem.bench.store import Row, Store
from degem.bench.summary import tables_in


def row(method: str, dataset: str, shift: str, rate: float = 1.0) -> Row:
    about = json.dumps({"label_rate": rate, "set": {}})
    return Row(method, dataset, shift, 0, "strict", 90.0, 50.0, 10.0, 80.0, 1.0, 1.0, 1.0, "1", about)


def test_each_figure_is_drawn_twice_and_the_same_rows_give_the_same_picture(tmp_path: Path) -> None:
    rows = [row(method, "actor", shift) for method in ("degem", "degree") for shift in ("structure", "label")]
    rows += [row("degem", f"synthetic-cora-{h}", "feature") for h in ("0.0", "0.2")]
    rows += [row("degem", "cora", "label", rate) for rate in (0.1, 0.5)]
    Store(tmp_path).append(rows)
    paths = figures.draw_all(tables_in(tmp_path), tmp_path / "a")
    names = {path.name for path in paths}
    stems = ("overall-strict", "label-rate-strict", "homophily-strict")
    assert names == {f"{stem}.{suffix}" for stem in stems for suffix in ("png", "svg")}
    figures.draw_all(tables_in(tmp_path), tmp_path / "b")
    for name in names:
        if name.endswith("svg"):
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert "published" in (tmp_path / "a" / "homophily-strict.svg").read_text()
