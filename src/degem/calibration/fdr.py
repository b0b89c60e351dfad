"""False discovery rates: of nodes judged together, and over a stream of arrivals."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.calibration.conformal import check_level, checked_scores
from degem.errors import DegemError
from degem.files import read_regular, replaced

Rule = Literal["lond", "saffron"]
MAX_STATE_BYTES = 1 << 28


def benjamini_hochberg(p_values: ArrayLike, level: float) -> NDArray[np.bool_]:
    r"""Which hypotheses to reject so that the expected share of false ones among them is at most ``level``.

    Rejects the :math:`k` smallest p-values, :math:`k = \max\{i : p_{(i)} \le i\,q/n\}` (Benjamini & Hochberg 1995).

    Arguments:
        p_values: One p-value a node.
        level: The false discovery rate :math:`q`.

    Example:
        >>> benjamini_hochberg([0.01, 0.02, 0.9], 0.05)
        array([ True,  True, False])
    """
    p = checked_scores(p_values)
    check_level(level)
    if len(p) == 0:
        return np.empty(0, dtype=np.bool_)
    ordered = np.sort(p)
    passing = np.flatnonzero(ordered <= level * np.arange(1, len(p) + 1) / len(p))
    cut = ordered[passing[-1]] if len(passing) else -1.0
    return np.asarray(p <= cut, dtype=np.bool_)


class OnlineFDR:
    r"""Decisions over a stream of arrivals, so that at any time few of the flagged nodes are false alarms.

    Each p-value is compared with a level that depends on the decisions so far. LOND (Javanmard & Montanari 2018) holds
    for p-values that share their calibration nodes, as these depend on each other positively; SAFFRON (Ramdas et al.,
    ICML 2018) finds more, but holds only where they are independent. The rules are those of the package
    ``online-fdr``. Levels fall as arrivals without a find go on: without a few thousand calibration nodes p-values soon
    cannot be small enough.

    Arguments:
        fdr: The false discovery rate :math:`q` over the whole stream.
        rule: ``lond`` or ``saffron``.

    Example:
        >>> stream = OnlineFDR(0.1)
        >>> stream.decide([0.0001, 0.8, 0.3]).tolist(), stream.num_seen
        ([True, False, False], 3)
    """

    def __init__(self, fdr: float = 0.1, rule: Rule = "lond") -> None:
        check_level(fdr)
        if rule not in get_args(Rule):
            raise DegemError(f"there is no rule {rule!r}: choose {' or '.join(get_args(Rule))}")
        self.fdr, self.rule = fdr, rule
        self._test = _package().Lond(fdr) if rule == "lond" else _package().Saffron(fdr, fdr / 2, 0.5)

    @property
    def num_seen(self) -> int:
        """How many p-values were judged."""
        return int(self._test.num_hypotheses)

    def decide(self, p_values: ArrayLike) -> NDArray[np.bool_]:
        """Which of these arrivals to flag, in the order in which they came."""
        return np.array([self._test.test_one(float(p)) for p in checked_scores(p_values)], dtype=np.bool_)

    def save(self, path: str | Path) -> None:
        """Write the state of the stream, a small JSON file, atomically."""
        document = {"fdr": self.fdr, "rule": self.rule, "state": self._test.snapshot()}
        with replaced(Path(path)) as file:
            file.write(json.dumps(document).encode())

    @classmethod
    def load(cls, path: str | Path) -> OnlineFDR:
        """The stream that :meth:`save` wrote."""
        try:
            document = json.loads(read_regular(Path(path), MAX_STATE_BYTES))
            stream = cls(document["fdr"], document["rule"])
            stream._test = type(stream._test).from_snapshot(document["state"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, DegemError) as error:
            raise DegemError(f"{path} holds no state of a stream ({error}): delete it to begin a new one") from None
        return stream


def _package() -> ModuleType:
    try:
        return import_module("online_fdr.p_values")
    except ImportError:
        raise DegemError("decisions over a stream need the package online-fdr: pip install online-fdr") from None
