import json

from degem.bench.comparison import standings_grid
from degem.bench.formats import markdown
from degem.bench.store import Row


def row(method: str, shift: str, seed: int, auroc: float, protocol: str = "arrival", **changes: object) -> Row:
    values = {
        "dataset": "cora",
        "protocol": protocol,
        "aupr": 50.0,
        "fpr95": 50.0,
        "acc": 80.0,
        "fit_seconds": 2.0,
        "score_seconds": 0.5,
        "peak_mib": 300.0,
        "version": "1",
        "parameters": json.dumps({"label_rate": 1.0, "set": {}}),
        **changes,
    }
    return Row(method=method, shift=shift, seed=seed, auroc=auroc, **values)  # type: ignore[arg-type]


ROWS = [
    *(row("degem", "structure", seed, 90.0 + seed) for seed in range(3)),
    *(row("degem", "label", seed, 70.0 + seed) for seed in range(3)),
    *(row("msp", "structure", seed, 80.0 + 1.01 * seed, fit_seconds=19.5 - seed) for seed in range(3)),
    *(row("msp", "label", seed, 76.0 - 4 * seed) for seed in range(3)),
    *(row("energy", "structure", seed, 60.0 + 1.01 * seed) for seed in range(3)),
    *(row("energy", "label", seed, 60.0 + 1.01 * seed) for seed in range(3)),
    *(row("oe", "structure", seed, 99.0 + seed / 9) for seed in range(3)),
    *(row("oe", "label", seed, 99.0 + seed / 9) for seed in range(3)),
]


def test_the_hardest_to_beat_comes_first_and_who_saw_ood_nodes_is_left_out() -> None:
    (part,) = standings_grid(ROWS).parts
    assert part[0] == "arrival, made shifts"
    lines = [[text for text, _ in line] for line in part[1]]
    assert [line[0] for line in lines] == ["msp", "energy"]
    assert lines[0][1:6] == ["2", "76.5", "81.0", "1 (1)", "1 (0)"]
    assert lines[0][7] == "10 / 2"


def test_natural_shifts_and_whole_graphs_stand_apart() -> None:
    natural = [row(method, "ES", seed, 50.0 + seed, dataset="twitch") for method in ("degem", "msp") for seed in (0, 1)]
    more = [row(method, "FR", seed, 50.0 + seed, dataset="twitch") for method in ("degem", "msp") for seed in (0, 1)]
    whole = [
        row(method, shift, seed, 50.0 + seed, "strict")
        for method in ("degem", "msp")
        for shift in ("structure", "feature")
        for seed in (0, 1)
    ]
    names = [name for name, _ in standings_grid([*ROWS, *natural, *more, *whole]).parts]
    assert names == ["arrival, made shifts", "arrival, natural shifts", "whole graph"]


def test_rows_with_fewer_labels_do_not_count() -> None:
    fewer = json.dumps({"label_rate": 0.1, "set": {}})
    lines = standings_grid([*ROWS, *(row("msp", "structure", seed, 0.0, parameters=fewer) for seed in range(3))])
    assert markdown(lines) == markdown(standings_grid(ROWS))
