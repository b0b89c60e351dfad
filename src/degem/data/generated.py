"""Graphs that grow, from seeded generators: accounts of a shop month by month, papers year by year.

The tutorials run on them, as no machine need have a dataset. They are made up: no figure on them says how a method does
on real data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from degem.graph import Graph

if TYPE_CHECKING:
    import pandas as pd

TASTES, COUNTRIES = 6, ("AT", "BE", "CZ", "DK", "ES", "FI")
TOPICS, WORDS, WORDS_PER_PAPER = 5, 400, 25


def shop_accounts(
    *, known: int = 1500, per_month: int = 300, months: int = 3, fraud: float = 0.06, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables of accounts that review products, and of pairs that reviewed the same one; after month 0 some are frauds.

    Each pair stands in both directions.

    As on amazon-fraud there are no classes, and columns are of any scale. An honest account shares a taste with most of
    its neighbours; its columns follow the taste. A fraud reviews at random, quickly, shortly and to extremes.

    Arguments:
        known: How many accounts there are in month 0, none of them a fraud.
        per_month: How many join in each later month.
        months: The number of months, month 0 among them.
        fraud: The share of frauds among those who join later.
        seed: Seed of the generator.

    Example:
        >>> accounts, pairs = shop_accounts()
        >>> accounts.groupby("month")["is_fraud"].agg(["size", "sum"]).to_numpy().tolist()
        [[1500, 0], [300, 19], [300, 25]]
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    month = np.repeat(np.arange(months), [known] + [per_month] * (months - 1))
    count = len(month)
    is_fraud = (month > 0) & (rng.random(count) < fraud)
    taste = rng.integers(TASTES, size=count)
    day = np.where(month == 0, rng.integers(-700, 31, count), 31 * month + rng.integers(0, 28, count))
    accounts = pd.DataFrame(
        {
            "id": [f"account-{number:04d}" for number in range(count)],
            "joined": pd.Timestamp("2025-01-01") + pd.to_timedelta(day, unit="D"),
            "country": np.where(rng.random(count) < 0.6, taste, rng.integers(TASTES, size=count)),
            "reviews": 1 + rng.poisson(np.where(is_fraud, 25, rng.gamma(2, 6, count))),
            "stars": np.where(
                is_fraud, rng.choice([1.1, 4.9], count), 3 + 0.25 * taste + 0.4 * rng.standard_normal(count)
            ).clip(1, 5),
            "words": np.exp(rng.normal(np.where(is_fraud, 2.8, 3 + 0.3 * taste), 0.5)).round(),
            "hours_between": np.exp(rng.normal(np.where(is_fraud, 1.5, 4 + 0.1 * taste), 0.8)).round(2),
            "verified": rng.random(count) < np.where(is_fraud, 0.5, 0.8),
            "month": month,
            "is_fraud": is_fraud,
        }
    )
    accounts["country"] = np.asarray(COUNTRIES)[accounts["country"]]
    accounts["stars"] = accounts["stars"].round(2).mask(rng.random(count) < 0.03)  # some values are missing
    groups = np.where(is_fraud, TASTES, taste)
    pairs = _attached(groups, np.zeros_like(month), 5, np.append(np.full(TASTES, 0.85), 0.0), rng)
    ids = accounts["id"].to_numpy()[np.concatenate([pairs, pairs[:, ::-1]])]
    return accounts, pd.DataFrame({"source": ids[:, 0], "target": ids[:, 1]})


def citation_years(
    *,
    first: int = 2010,
    last: int = 2020,
    per_year: int = 200,
    new_topic: int = 2018,
    drift: float = 0.12,
    seed: int = 0,
) -> Graph:
    """Papers of five topics that cite earlier ones, whose words drift, and from some year on a sixth topic.

    The columns ``year`` and ``topic`` tell the truth; papers of the sixth topic have no label.

    Arguments:
        first: The first year.
        last: The last year.
        per_year: Papers a year.
        new_topic: The year in which a tenth of the papers begins to be of the sixth topic.
        drift: How far the words of a topic move in a year, in units of the spread of their log-frequencies.
        seed: Seed of the generator.

    Example:
        >>> graph = citation_years()
        >>> graph
        Graph(2,200 nodes, 8,604 edges, 400 features, 5 classes)
        >>> int((~graph.labelled).sum())
        45
    """
    rng = np.random.default_rng(seed)
    year = np.repeat(np.arange(first, last + 1), per_year)
    topic = rng.integers(TOPICS, size=len(year))
    topic[(year >= new_topic) & (rng.random(len(year)) < 0.1)] = TOPICS
    start, course = rng.standard_normal((2, TOPICS + 1, WORDS))
    start[TOPICS] = (start[:2].sum(axis=0) + start[TOPICS]) / 2  # it grows out of two others
    levels = start[topic] + drift * (year - first)[:, None] * course[topic]
    chances = np.exp(levels)
    counts = rng.poisson(WORDS_PER_PAPER * chances / chances.sum(axis=1, keepdims=True))
    pairs = _attached(topic, year - first, 4, np.append(np.full(TOPICS, 0.85), 0.3), rng)
    return Graph.from_arrays(
        features=(counts > 0).astype(np.float32),
        edges=np.concatenate([pairs, pairs[:, ::-1]]),
        labels=np.where(topic < TOPICS, topic, -1),
        node_ids=[f"{at}-{number:04d}" for number, at in enumerate(year)],
        feature_names=[f"word {number}" for number in range(WORDS)],
        columns={"year": year, "topic": topic},
    )


def _attached(
    groups: NDArray[np.int64],
    time: NDArray[np.int64],
    edges_per_node: int,
    loyalty: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Pairs of nodes: each joins nodes of its time or before, of its own group with the chance that the group gives."""
    until = np.searchsorted(time, time, side="right")
    pairs = set()
    for node, (group, end) in enumerate(zip(groups.tolist(), until.tolist(), strict=True)):
        own = np.flatnonzero(groups[:end] == group)
        for alike in rng.random(edges_per_node) < loyalty[group]:
            other = int(rng.choice(own)) if alike else int(rng.integers(end))
            if other != node:
                pairs.add((min(node, other), max(node, other)))
    return np.array(sorted(pairs), dtype=np.int64)
