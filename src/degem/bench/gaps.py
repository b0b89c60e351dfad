"""Where a gap between ours and a published figure comes from, as far as rows can tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from degem.bench.specs import Spec, Variant
from degem.bench.store import Row
from degem.bench.summary import HETEROPHILIC, Entry, Place, Values, collected, entries, seeds_of

WIDE = 5.0  # points: a gap above this is taken apart
REVERSED = ("odin", "mahalanobis")  # published with the sign of the score turned over


@dataclass(frozen=True)
class Gap:
    """A published figure far from ours, and what two differences are worth. Points are ours to gain.

    Arguments:
        entry: The cell, under the strict protocol.
        epoch: Points that an epoch chosen on the test nodes brings, NaN where no oracle row says.
        settings: Points that the settings of the published program bring on top, NaN where no row says.
    """

    entry: Entry
    epoch: float
    settings: float

    @property
    def published(self) -> float:
        """The published figure with the sign of its score set right."""
        return 100 - self.entry.published if self.entry.row in REVERSED else self.entry.published

    @property
    def total(self) -> float:
        """The published figure minus ours."""
        assert self.entry.ours is not None
        return self.published - self.entry.ours.mean

    @property
    def left(self) -> float:
        """What neither the epoch nor the settings explain."""
        return self.total - float(np.nansum([self.epoch, self.settings]))

    @property
    def other_causes(self) -> tuple[str, ...]:
        """What else is known to differ in this cell."""
        known = []
        if self.entry.row in REVERSED:
            known.append("published sign turned over, the epoch chosen under it")
        if self.entry.dataset in HETEROPHILIC and self.entry.row != "degem":
            known.append("one-way edges")
        if self.entry.dataset == "twitch":
            known.append("other features")
        return tuple(known)


def wide_gaps(main: Spec, published_settings: Spec, rows: Sequence[Row]) -> list[Gap]:
    """The cells whose published AUROC is more than :data:`WIDE` points from ours, the widest first.

    Arguments:
        main: The table of the methods at their defaults.
        published_settings: The table of the same methods at the settings of the published program; of several variants
            of a method the best counts, as it did there.
        rows: Stored rows, of any table and protocol.
    """
    strict, oracle = (collected(rows, protocol) for protocol in ("strict", "oracle"))
    found = []
    for entry in entries(main, rows, "strict"):
        if entry.ours is None or math.isnan(entry.published):
            continue
        place = (entry.dataset, entry.shift, entry.label_rate)
        default = next(variant for variant in main.variants if variant.name == entry.row)
        others = [variant for variant in published_settings.variants if variant.method == default.method]
        epoch = _gain(seeds_of(strict, default, place), seeds_of(oracle, default, place))
        settings = _best_gain(oracle, default, others, place)
        if math.isnan(settings):
            settings = _best_gain(strict, default, others, place)
        found.append(Gap(entry, epoch, settings))
    return sorted((gap for gap in found if abs(gap.total) > WIDE), key=lambda gap: -abs(gap.total))


def _best_gain(values: Values, default: Variant, others: Iterable[Variant], place: Place) -> float:
    before = seeds_of(values, default, place)
    gains = [_gain(before, seeds_of(values, other, place)) for other in others]
    return max((gain for gain in gains if not math.isnan(gain)), default=math.nan)


def _gain(before: Mapping[int, Row], after: Mapping[int, Row]) -> float:
    """The mean difference in AUROC over the seeds that both have."""
    pairs = [(before[seed], after[seed]) for seed in before.keys() & after.keys()]
    found = [new.auroc - old.auroc for old, new in pairs if not old.error and not new.error]
    return float(np.mean(found)) if found else math.nan


def gaps_section(gaps: Iterable[Gap]) -> list[str]:
    """The gaps as a section of the page of results."""
    gaps = list(gaps)
    if not gaps:
        return []
    known = [gap for gap in gaps if not math.isnan(gap.epoch)]
    lines = [
        "## Where the gaps come from",
        "",
        f"{len(gaps)} cells of the main table are more than {WIDE:g} points from the published AUROC. In points:",
        "**epoch** is what an epoch chosen on the test nodes brings at our settings (oracle − strict, same seeds);",
        "**settings** what those of GNNSafe's benchmark bring on top (table `gnnsafe-settings`; under strict where",
        "oracle rows lack); **left** the rest. Published figures of ODIN and Mahalanobis are turned over first.",
        "[directed-edges.md](directed-edges.md) and [methods.md](methods.md) say what is known of the rest.",
        "",
    ]
    if known:
        before, after = (
            float(np.mean(np.abs(side))) for side in zip(*((gap.total, gap.left) for gap in known), strict=True)
        )
        near = sum(abs(gap.left) <= WIDE for gap in known)
        lines += [
            f"On the {len(known)} cells with oracle rows the mean gap is {before:.1f} points and the mean rest "
            f"{after:.1f}; {near} of these cells come within {WIDE:g} points.",
            "",
        ]
    lines += [
        "| method | cell | ours | published | gap | epoch | settings | left | also differs |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    return [*lines, *map(_line, gaps), ""]


def _line(gap: Gap) -> str:
    assert gap.entry.ours is not None
    figures = [f"{gap.entry.ours.mean:.1f}", f"{gap.published:.1f}"]
    parts = (gap.total, gap.epoch, gap.settings, gap.left)
    figures += ["" if math.isnan(points) else f"{points:+.1f}" for points in parts]
    texts = [gap.entry.row, f"{gap.entry.dataset} {gap.entry.shift}", *figures, ", ".join(gap.other_causes)]
    return f"| {' | '.join(texts)} |"
