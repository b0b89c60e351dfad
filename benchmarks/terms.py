"""What each term of DeGEM's energy adds: the same fits scored without it, and by it alone, under arrival.

    python benchmarks/terms.py                 # five datasets, seeds 0 and 1
    python benchmarks/terms.py --datasets cora --seeds 1

Writes ``results/terms.csv`` and ``docs/terms.md``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
import pandas as pd
import torch

from degem import DeGEM, Graph
from degem.detectors.degem.combine import combine
from degem.metrics import auroc_ood_positive
from degem.shifts import Settings, load_arrival
from degem.shifts.arrival_scenarios import arrivals_of
from degem.shifts.scenarios import kind_of

DATASETS = "cora,amazon-photo,chameleon,actor,cornell,amazon-fraud"
PAGE = Path(__file__).parents[1] / "docs" / "terms.md"
TEXT = """# What each term adds

Written by `python benchmarks/terms.py` from `benchmarks/results/terms.csv`: DeGEM fitted once, then scored by all of
its terms, without each, and by each alone. Protocol arrival, AUROC of new ID against OOD nodes in percent, mean over
seeds {seeds}.
`latent` is the paper's energy, trained by maximum likelihood with Langevin sampling.

"""


def main() -> None:
    table = measure.arrival_table(__doc__, "terms", measured, datasets=DATASETS, seeds=2)
    PAGE.write_text(
        TEXT.format(seeds=", ".join(map(str, sorted(set(table["seed"]))))) + _table(table), encoding="utf-8"
    )


def measured(dataset: str, seed: int) -> Iterator[dict[str, Any]]:
    """The AUROC of every choice of terms, one row a shift."""
    shifts = arrivals_of(dataset)
    for kind in dict.fromkeys(map(kind_of, shifts)):
        arrival = load_arrival(dataset, kind, Settings(seed=seed))
        detector = DeGEM(seed=seed).fit(arrival.train_graph)
        for shift, growth in arrival.grown.items():
            yield {"dataset": dataset, "shift": shift, "seed": seed} | {
                name: 100 * auroc_ood_positive(scores[growth.new_id], scores[growth.ood])
                for name, scores in choices(detector, growth.graph).items()
            }


@torch.no_grad()
def choices(detector: DeGEM, graph: Graph) -> dict[str, np.ndarray]:
    """The scores by all terms, without each, and by each alone."""
    model = detector.model_
    energies, _ = detector._energies(graph)
    combination, isolated = detector._combination(graph, energies), torch.from_numpy(graph.degrees == 0)
    found = {"all": combine(energies, isolated, model.needs_neighbours, combination).numpy()}
    for place, term in enumerate(model.energy_terms):
        weights = combination.weights.clone()
        weights[place] = 0
        without = dataclasses.replace(combination, weights=weights)
        found[f"without {term.name}"] = combine(energies, isolated, model.needs_neighbours, without).numpy()
        found[f"{term.name} alone"] = combination.parts(energies)[:, place].numpy()
    return found


def _table(rows: pd.DataFrame) -> str:
    columns = [column for column in rows if column == "all" or " " in str(column)]
    means = rows.groupby(["dataset", "shift"], sort=False)[columns].mean()
    means.loc[("mean", "all"), :] = means.mean()
    text = means.T.map(lambda value: "" if pd.isna(value) else f"{value:.1f}")
    text.columns = [" ".join(pair) for pair in text.columns]
    return measure.markdown_table(text.reset_index(names="terms"))


if __name__ == "__main__":
    measure.find_datasets()
    main()
