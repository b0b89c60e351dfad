"""False discovery rates: of nodes judged together, and over a stream of arrivals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from degem.calibration.conformal import check_level, checked_scores
from degem.errors import DegemError, quoted
from degem.files import memory_limit, read_regular, replaced
from degem.model_file import PATIENCE, checksum_of

Rule = Literal["lond", "saffron"]
CANDIDATE = 0.5  # SAFFRON's: a larger p-value speaks for a node in distribution


class _Stream(BaseModel):
    """A stream in a file. Its history has one letter an arrival: found, candidate (a small p-value), or neither."""

    model_config = ConfigDict(strict=True, extra="forbid")

    fdr: float = Field(gt=0, lt=1)
    rule: Rule
    history: str = Field(pattern="^[fc.]*$")
    checksum: str


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
            raise DegemError(f"there is no rule {quoted(rule)}: choose {' or '.join(get_args(Rule))}")
        self.fdr, self.rule, self._history = fdr, rule, ""
        from online_fdr import p_values  # slow to load, and most decisions are no stream

        self._test = p_values.Lond(fdr) if rule == "lond" else p_values.Saffron(fdr, fdr / 2, CANDIDATE)

    @property
    def num_seen(self) -> int:
        """How many p-values were judged."""
        return len(self._history)

    def decide(self, p_values: ArrayLike) -> NDArray[np.bool_]:
        """Which of these arrivals to flag, in the order in which they came."""
        p = checked_scores(p_values)
        if len(p) and not (p.min() >= 0 and p.max() <= 1):
            raise DegemError("p-values lie between 0 and 1")
        flags = np.array([self._test.test_one(value) for value in p.tolist()], dtype=np.bool_)
        self._history += "".join(np.where(flags, "f", np.where(p <= CANDIDATE, "c", ".")).tolist())
        return flags

    def save(self, path: str | Path) -> None:
        """Write the state of the stream, a small JSON file with a checksum, atomically."""
        document: dict[str, Any] = {"fdr": self.fdr, "rule": self.rule, "history": self._history}
        stored = _Stream(**document, checksum=checksum_of(document))
        with replaced(Path(path), follow_link=True) as file:
            file.write(stored.model_dump_json().encode())

    @classmethod
    def load(cls, path: str | Path) -> OnlineFDR:
        """The stream that :meth:`save` wrote."""
        try:
            stored = _Stream.model_validate_json(read_regular(Path(path), memory_limit()))
        except OSError as error:
            raise DegemError(f"{path} cannot be read ({error.strerror}): delete it to begin a new stream") from None
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise DegemError(f"{path} holds no state of a stream ({reason}): delete it to begin a new one") from None
        if checksum_of(stored.model_dump(exclude={"checksum"})) != stored.checksum:
            raise DegemError(f"{path} holds no state of a stream (it was altered): delete it to begin a new one")
        stream = cls(stored.fdr, stored.rule)
        stream.resume(stored.history)
        return stream

    def resume(self, history: str) -> None:
        """Go on behind arrivals that were judged before, a letter each: ``f`` found, ``c`` p ≤ ½, else a dot."""
        snapshot, candidates = self._test.snapshot(), [letter != "." for letter in history]
        found = [place for place, letter in enumerate(history, start=1) if letter == "f"]
        own: dict[str, object] = {"num_reject": len(found)}
        if self.rule == "saffron":
            prefix = [0, *np.cumsum(candidates).tolist()]
            own = {"candidates": candidates, "_candidate_prefix": prefix, "reject_idx": found}
        snapshot["state"] |= own | {"_num_hypotheses": len(history)}
        self._test, self._history = type(self._test).from_snapshot(snapshot), history

    @classmethod
    @contextmanager
    def shared(cls, path: Path, fdr: float) -> Iterator[OnlineFDR]:
        """The stream in a file, or a new one, saved there unless what is done with it fails; others wait their turn."""
        try:
            with FileLock(f"{path}.lock", timeout=PATIENCE):
                stream = cls.load(path) if path.exists() else cls(fdr)
                if stream.fdr != fdr:
                    raise DegemError(f"{path} was begun with fdr = {stream.fdr:g}: keep to it, or name another file")
                yield stream
                stream.save(path)
        except Timeout:
            raise DegemError(f"{path} is in use by another process: try again") from None
