"""Where a gap between ours and a published figure comes from, as far as rows can tell.

python benchmarks/gaps.py benchmarks/results/bench docs/gaps.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from degem.bench.specs import Spec, Variant, read_spec
from degem.bench.store import Row
from degem.bench.summary import Entry, Place, Results, Values, collected, entries, seeds_of, tables_in

WIDE = 5.0  # points: a gap above this is taken apart


@dataclass(frozen=True)
class Gap:
    """A published figure far from ours, and what differences between the two are worth, in points of AUROC.

    Arguments:
        entry: The cell, under the strict protocol.
        epoch: What an epoch chosen on the test nodes brings, NaN where no oracle row says.
        settings: What the settings of the published program bring on top, NaN where no row says.
        as_published: The AUROC of the method run as the published program ran it, NaN where no row says.
    """

    entry: Entry
    epoch: float
    settings: float
    as_published: float

    @property
    def ours(self) -> float:
        """Our mean."""
        assert self.entry.ours is not None
        return self.entry.ours.mean

    @property
    def total(self) -> float:
        """The published figure minus ours."""
        return self.entry.published - self.ours

    @property
    def program(self) -> float:
        """What the rest of the published program brings on top: edges as stored, and its faults."""
        return self.as_published - self.ours - float(np.nansum([self.epoch, self.settings]))

    @property
    def left(self) -> float:
        """What none of these explains."""
        return self.total - float(np.nansum([self.epoch, self.settings, self.program]))


def wide_gaps(results: Results, published: Mapping[tuple[str, str, str], float]) -> list[Gap]:
    """The cells of the main table whose published AUROC is more than :data:`WIDE` points from ours, widest first.

    Arguments:
        results: The rows.
        published: AUROC of methods run as the published program ran them, by method, dataset and shift.
    """
    main, published_settings = results.table("main"), read_spec("gnnsafe-settings")
    if main is None:
        return []
    strict, oracle = (collected(results.rows, protocol) for protocol in ("strict", "oracle"))
    found = []
    for entry in entries(main, results.rows, "strict"):
        if entry.ours is not None and abs(entry.difference) > WIDE:
            place = (entry.dataset, entry.shift, entry.label_rate)
            default = next(variant for variant in main.variants if variant.name == entry.row)
            epoch = _gain(seeds_of(strict, default, place), seeds_of(oracle, default, place))
            settings = _best_gain(oracle, default, published_settings, place)
            if math.isnan(settings):
                settings = _best_gain(strict, default, published_settings, place)
            as_published = published.get((entry.row, entry.dataset, entry.shift), math.nan)
            found.append(Gap(entry, epoch, settings, as_published))
    return sorted(found, key=lambda gap: -abs(gap.total))


def _best_gain(values: Values, default: Variant, other: Spec, place: Place) -> float:
    """What other settings of a method bring; of several variants the best counts, as it did for the paper."""
    before = seeds_of(values, default, place)
    variants = [variant for variant in other.variants if variant.method == default.method]
    gains = [_gain(before, seeds_of(values, variant, place)) for variant in variants]
    return max((gain for gain in gains if not math.isnan(gain)), default=math.nan)


def _gain(before: Mapping[int, Row], after: Mapping[int, Row]) -> float:
    """The mean difference in AUROC over the seeds that both have."""
    pairs = [(before[seed], after[seed]) for seed in before.keys() & after.keys()]
    found = [new.auroc - old.auroc for old, new in pairs if not old.error and not new.error]
    return float(np.mean(found)) if found else math.nan


HEAD = """# Where the gaps come from

{count} cells of the main table are more than {wide:g} points from the published AUROC. In points:

- **epoch**: what an epoch chosen on the test nodes brings at our settings (oracle − strict, same seeds);
- **settings**: what those of GNNSafe's benchmark bring on top (table `gnnsafe-settings`; under strict where oracle rows
  lack);
- **program**: what the rest of the published program brings on top, seed 0: edges as they are stored, one-way on
  Chameleon, Actor and Cornell, a reversed sign in ODIN and Mahalanobis, energies halved at nodes without neighbours,
  the first nodes' latents under the training nodes' labels in Mahalanobis, GKDE scored by the class probability
  ([directed-edges.md](directed-edges.md));
- **left**: the rest. [methods.md](methods.md) says what is known of it; Twitch has other features than the paper's.
"""


def gaps_page(gaps: Iterable[Gap]) -> str:
    """The gaps as a page."""
    gaps = list(gaps)
    lines = [HEAD.format(count=len(gaps), wide=WIDE)]
    known = [gap for gap in gaps if not math.isnan(gap.as_published)]
    if known:
        before, after = (np.mean(np.abs(side)) for side in zip(*((gap.total, gap.left) for gap in known), strict=True))
        near = sum(abs(gap.left) <= WIDE for gap in known)
        lines += [
            f"Of the {len(known)} cells that were also run as the published program runs them, the mean gap is "
            f"{before:.1f} points, and {after:.1f} are left; {near} come within {WIDE:g} points.",
            "",
        ]
    lines += ["| method | cell | ours | published | gap | epoch | settings | program | left |"]
    return "\n".join([*lines, "|---|---|" + "---:|" * 7, *map(_line, gaps), ""])


def _line(gap: Gap) -> str:
    parts = (gap.total, gap.epoch, gap.settings, gap.program, gap.left)
    figures = ["" if math.isnan(points) else f"{points:+.1f}" for points in parts]
    place = f"{gap.entry.dataset} {gap.entry.shift}"
    texts = [gap.entry.row, place, f"{gap.ours:.1f}", f"{gap.entry.published:.1f}", *figures]
    return f"| {' | '.join(texts)} |"


def as_published(path: Path) -> dict[tuple[str, str, str], float]:
    """Means over the seeds of ``benchmarks/directed_edges.py``; of several scores of a method the best counts."""
    if not path.is_file():
        return {}
    table = pd.read_csv(path)
    table = table[(table["edges"] == "stored") & (table["method"] != "gpn-diffusion")]
    found: dict[tuple[str, str, str], float] = {}
    for key, auroc in table.groupby(["method", "dataset", "shift"])["auroc"].mean().items():
        method, dataset, shift = map(str, key)  # type: ignore[call-overload]
        cell = (method.split(":")[0], dataset, shift)
        found[cell] = max(float(auroc), found.get(cell, 0.0))
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = wide_gaps(tables_in(folder), as_published(folder / "directed-edges.csv"))
    Path(sys.argv[2]).write_text(gaps_page(found), encoding="utf-8")
