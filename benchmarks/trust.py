"""Which predictions are wrong: the chance of ``detector.trust`` beside the largest softmax of the same classifier.

    python benchmarks/trust.py                              # nine graphs, seeds 0 to 2
    python benchmarks/trust.py --datasets cora --seeds 1

Under arrival, for DeGEM's own classifier and for a GCN that stands for a network of the user's (MSP's). Errors are told
on new ID nodes, on shifted ones and on both; a node of a class that was not in training is an error whatever is
predicted. Writes ``results/trust.csv`` and ``docs/trust.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from degem import DeGEM, Detector
from degem.metrics import aurc, auroc_ood_positive
from degem.shifts import Arrival, Settings, load_arrival
from degem.shifts.arrival import Growth
from degem.shifts.arrival_scenarios import arrivals_of
from degem.shifts.scenarios import kind_of

PAPER = "cora,amazon-photo,chameleon,actor,cornell,twitch"
DATASETS = f"citation-acm,citation-dblp,citation-citation,{PAPER}"
PAGE = Path(__file__).parents[1] / "docs" / "trust.md"
TEXT = """# Which predictions are wrong

Written by `python benchmarks/trust.py` from `benchmarks/results/trust.csv`. Protocol arrival: the detector is fitted,
the graph grows by new in-distribution nodes and shifted ones, and errors of the *same* predictions are told by
`detector.trust` and by MSP, 1 − the largest softmax. AUROC of finding wrong predictions (higher is better) and AURC,
the area under the risk–coverage curve (lower is better), in percent, mean over shifts and seeds {seeds}. *ID*: new
in-distribution nodes; *shifted*: rewired nodes, nodes with mixed features, or nodes of another network; *both*: these
together and nodes of left-out classes, whose predictions are all wrong. *chance* and *wrong* are, over new ID nodes,
the mean chance given and the share of wrong predictions: they should agree. The model of errors is fitted on held-out
ID nodes only, {least} to {most} of them.

"""


def main() -> None:
    write_page(measure.arrival_table(__doc__, "trust", measured, datasets=DATASETS, seeds=3))


def measured(dataset: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row a shift and a classifier."""
    for kind in dict.fromkeys(map(kind_of, arrivals_of(dataset))):
        arrival = load_arrival(dataset, kind, Settings(seed=seed))
        gcn = Detector.registry["msp"](seed=seed).fit(arrival.train_graph)
        degem = DeGEM(seed=seed).fit(arrival.train_graph)
        for shift, growth in arrival.grown.items():
            where = {"dataset": dataset, "shift": shift, "seed": seed, "calibration": len(degem.calibration_)}
            own = gcn.score(growth.graph).probabilities
            assert own is not None
            logits = np.full((len(own), max(gcn.classes_) + 1), -np.inf)
            logits[:, gcn.classes_] = np.log(own)
            for classifier, given in (("DeGEM's own", None), ("a GCN, given", logits)):
                yield {**where, "classifier": classifier, **figures(degem, arrival, growth, given)}


def figures(detector: Detector, arrival: Arrival, growth: Growth, logits: NDArray[np.float64] | None) -> dict[str, Any]:
    """How well errors are told apart from right predictions."""
    table = detector.trust(growth.graph, logits=logits)
    names = arrival.train_graph.class_names
    truth = {"id": (growth.new_id, growth.labels), "shifted": (growth.ood, growth.ood_labels)}
    chance, unsure = table["error_chance"].to_numpy(), 1 - table["class_probability"].to_numpy()
    predicted = table["predicted_class"].to_numpy()
    wrong, rows = {}, {}
    for part, (nodes, labels) in truth.items():
        rows[part], known = nodes[labels >= 0], labels[labels >= 0]
        wrong[part] = predicted[rows[part]] != (known if names is None else np.array(names)[known])
    wrong["both"], rows["both"] = (np.concatenate([part["id"], part["shifted"]]) for part in (wrong, rows))
    found: dict[str, Any] = {"chance": 100 * chance[rows["id"]].mean(), "wrong": 100 * wrong["id"].mean()}
    for part, errors in wrong.items():
        if errors.any() and not errors.all():
            for name, doubt in (("trust", chance), ("msp", unsure)):
                told = doubt[rows[part]]
                found[f"auroc_{part}_{name}"] = 100 * auroc_ood_positive(told[~errors], told[errors])
                found[f"aurc_{part}_{name}"] = 100 * aurc(errors, told)
    return found


def write_page(rows: pd.DataFrame) -> None:
    seeds = ", ".join(map(str, sorted(set(rows["seed"]))))
    text = TEXT.format(seeds=seeds, least=rows["calibration"].min(), most=rows["calibration"].max())
    for classifier, some in rows.groupby("classifier", sort=False):
        means = some.groupby("dataset", sort=False).mean(numeric_only=True)
        better = [
            f"{(means[f'auroc_{part}_trust'] > means[f'auroc_{part}_msp']).sum()} of {len(means)} ({name})"
            for part, name in (("id", "ID"), ("shifted", "shifted"), ("both", "both"))
        ]
        text += f"## Classifier: {classifier}\n\nAUROC above MSP's: {', '.join(better)}.\n\n{_table(means)}\n"
    PAGE.write_text(text.rstrip() + "\n", encoding="utf-8")


def _table(means: pd.DataFrame) -> str:
    table = pd.DataFrame({"dataset": means.index})
    for metric in ("auroc", "aurc"):
        for part in ("id", "shifted", "both"):
            pair = [means[f"{metric}_{part}_{name}"].map("{:.1f}".format) for name in ("trust", "msp")]
            heading = f"{metric.upper()} {'ID' if part == 'id' else part}: trust / MSP"
            table[heading] = [" / ".join(both) for both in zip(*pair, strict=True)]
    table["chance / wrong"] = [f"{a:.1f} / {b:.1f}" for a, b in zip(means["chance"], means["wrong"], strict=True)]
    return measure.markdown_table(table)


if __name__ == "__main__":
    measure.find_datasets()
    main()
