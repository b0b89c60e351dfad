"""What is asked of detectors: calls with spoilt arguments, the command, and fits on graphs that are hard to learn."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from degem import Detector, Graph, NodeSet, parameters
from degem.cli import main
from degem.compare import compare
from degem.data.archives import write_npz
from degem.explain import explain
from fuzz import models
from fuzz.files import Attempt, expect
from fuzz.mutate import NUMBERS, TOKENS, VALUES, spoil_array

FLAT = [value for value in VALUES if not isinstance(value, dict)]
CHEAP = ["norm", "degree", "nonzeros", "feature-knn", "ecod"]


def calls(rng: Random, folder: Path) -> Attempt:
    """A method of a fitted detector with one or two spoilt arguments."""
    graph = models.graph()
    detector = Detector.load(models.home(rng.choice(models.METHODS)))
    choices: dict[str, Any] = {"alpha": 0.05, "fdr": None, "only": [3, 5], "by_degree": False, "exchangeable": "nodes"}
    for name in rng.sample(sorted(choices), rng.randint(1, 2)):
        choices[name] = _argument(rng, np.arange(60))
    nodes, other = _argument(rng, np.arange(60)), rng.choice([graph, graph, *VALUES])
    fitted = Detector.registry[rng.choice(CHEAP)]()
    mask = {rng.choice(["train_mask", "calibration_mask"]): _argument(rng, np.arange(60) % 2 == 0)}
    made: list[Callable[[], Any]] = [
        lambda: detector.score_table(other, **choices),
        lambda: detector.predict(graph, **choices),
        lambda: detector.calibrate(graph, nodes).score_table(graph),
        lambda: fitted.fit(other, **mask).score_table(graph),
        lambda: fitted.fit(graph, exposure=NodeSet(graph, nodes)),
        lambda: graph.subgraph(nodes),
        lambda: explain(detector, graph, nodes),
        lambda: compare(detector, graph, other, alpha=choices["alpha"], num_permutations=9),
        lambda: graph.replace(**{rng.choice(["features", "labels", "node_ids"]): nodes}),
    ]
    return rng.choice(made)


def _argument(rng: Random, array: np.ndarray) -> Any:
    """A value of any kind, or an array like the one given, spoilt."""
    if rng.random() < 0.5:
        return rng.choice([*VALUES, *NUMBERS])
    return spoil_array(rng, array)


def commands(rng: Random, folder: Path) -> Attempt:
    """The command on a graph whose names, and with words which, are meant to do harm."""
    nasty = [token.decode("latin-1")[:200] for token in TOKENS] + ["[/bold]", "[red]", "\u202e", "\u2028", "\x9b2J"]
    texts = [text for text in nasty if "\x00" not in text]
    graph, mark = models.graph(), rng.choice(texts)
    write_npz(
        graph.replace(
            node_ids=np.array([f"n{row}{mark}" for row in range(60)]),
            feature_names=tuple(f"f{column}{mark}" for column in range(6)),
            class_names=tuple(f"c{index}{mark}" for index in range(3)),
            columns={f"k{mark}": np.arange(60), "ood": np.arange(60) % 7 == 0},
        ),
        folder / "g.npz",
    )
    (folder / "ids.txt").write_text(f"n1{mark}\nn2{mark}\n")
    file, model = str(folder / "g.npz"), str(folder / "model")
    Detector.registry[rng.choice(CHEAP)]().fit(graph.replace(class_names=(mark + "0", mark + "1", mark))).save(
        folder / "model"
    )
    words: list[list[str]] = [
        ["info", model],
        ["info", model, "--json"],
        ["score", model, file, "--out", str(folder / "s.csv"), "--nodes", str(folder / "ids.txt")],
        ["score", model, file, "--out", str(folder / f"s{mark.replace('/', '')[:50]}.csv")],
        ["score", model, file, "--out", str(folder / "s.csv"), "--alpha", mark],
        ["explain", model, file, f"n3{mark}"],
        ["explain", model, file, mark, "--json"],
        ["evaluate", model, file, "--ood", rng.choice(["ood", f"k{mark}", mark])],
        ["calibrate", model, file, "--nodes", str(folder / "ids.txt")],
        ["compare", model, file, file, "--permutations", "200"],
        ["fit", file, "--method", rng.choice(["norm", mark]), "--out", str(folder / "new")],
        ["fit", file, "--method", "norm", "--set", f"{mark}=1", "--out", str(folder / "new")],
        ["bench", "show", str(folder), "--methods", mark],
        [mark, *rng.sample([mark, "--json", model, "--out"], 2)],
    ]
    chosen = rng.choice(words)

    def attempt() -> None:
        said, told = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            try:
                main(chosen)
            except SystemExit as stop:
                expect(stop.code in (None, 0, 2, 3), f"exit code {stop.code}: {told.getvalue()[-200:]!r}")
        shown = said.getvalue() + told.getvalue()
        bad = {letter for letter in shown if letter != "\n" and not letter.isprintable()}
        expect(not bad, f"control characters {sorted(bad)!r} of {chosen[0]!r}")

    return attempt


def hard_graphs(rng: Random, folder: Path) -> Attempt:
    """A method on a graph with little to learn from: its scores are finite, or it says why not."""
    make = _hard(rng)
    kind = Detector.registry[rng.choice(models.METHODS)]
    known = parameters.names(kind)
    detector = kind(**{name: value for name, value in models.QUICK.items() if name in known}, seed=rng.randrange(99))

    def attempt() -> None:
        graph = make()
        last = np.arange(max(0, graph.num_nodes - 5), graph.num_nodes)
        detector.fit(graph, exposure=NodeSet(graph, last) if kind.needs_exposure else None)
        found = detector.score_table(graph)
        expect(np.isfinite(found[["score", "p_value"]]).all(axis=None), "scores that are none")
        expect(found["p_value"].between(0, 1).all(), "p-values that are none")

    return attempt


def _hard(rng: Random) -> Callable[[], Graph]:
    """A graph whose features, edges or labels leave little to go by."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    count = rng.choice([1, 2, 3, 20, 60, 60, 60])
    labels = np.arange(count) % rng.choice([1, 2, 3, 3, 3, count])
    features = numbers.random((count, rng.choice([1, 5, 5, 5]))) + labels[:, None]
    edges = numbers.integers(0, count, (2 * count, 2))
    scale = rng.choice([1, 1, 1, 1e30, 3e37, 1e-30, 1e-40, -1e5, 0])
    match rng.randrange(6):
        case 0:
            features = np.repeat(features[:1], count, axis=0)
        case 1:
            features[rng.randrange(count)] *= rng.choice([1e30, -1e10, 0])
        case 2:
            features = np.outer(features[:, 0], np.ones(4))
    match rng.randrange(6):
        case 0:
            edges = edges[:0]
        case 1:
            edges = np.stack([np.zeros(count, dtype=np.int64), np.arange(count)], axis=1)
        case 2:
            edges = np.argwhere(np.ones((count, count)))
        case 3:
            edges //= 2
    match rng.randrange(6):
        case 0:
            labels = np.full(count, -1)
        case 1:
            labels = np.where(np.arange(count) < 4, labels, -1)
        case 2:
            labels = labels * 1000
    matrix: Any = features * scale
    if rng.random() < 0.3:
        matrix = sp.csr_array(np.where(numbers.random(matrix.shape) < 0.5, matrix, 0))
    return lambda: Graph.from_arrays(features=matrix, edges=edges, labels=labels)
