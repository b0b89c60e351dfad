"""Detectors under the names of scikit-learn and of PyOD. What they call ``X`` is a graph."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from degem.calibration import threshold
from degem.detectors import Detector
from degem.detectors.degem import DeGEM


class SklearnDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """A detector with the verbs of scikit-learn's outlier detectors: **higher is more normal**.

    ``predict`` judges by p-values, which compare with calibration nodes of the same graph; on the graph of the fit it
    is the sign of ``decision_function``, in a graph that has grown it is the one to go by.

    Arguments:
        detector: What to fit; default: ``DeGEM()``. It is cloned, never changed.
        alpha: The false-alarm rate of ``predict``.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> from degem.detectors.features import ECOD
        >>> adapter = SklearnDetector(ECOD(), alpha=0.1)
        >>> sorted(set(adapter.fit_predict(digits_graph()).tolist()))
        [-1, 1]
    """

    def __init__(self, detector: Detector | None = None, *, alpha: float = 0.05) -> None:
        self.detector = detector
        self.alpha = alpha

    def fit(self, X: Any, y: None = None) -> Self:
        """Fit a clone of the detector, ``detector_``; the graph has the labels, ``y`` is ignored."""
        self.detector_ = _fitted(self.detector, X)
        cut = threshold(self.detector_.calibration_.scores, self.alpha)
        self.offset_ = -float(np.nextafter(cut, -np.inf))  # the largest score that is not flagged
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Minus the detector's scores: lower is more out-of-distribution."""
        check_is_fitted(self)
        return -self.detector_.decision_function(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """``score_samples`` less ``offset_``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """−1 for nodes flagged as out-of-distribution, else 1."""
        check_is_fitted(self)
        return 1 - 2 * self.detector_.predict(X, alpha=self.alpha)


class PyODDetector(BaseEstimator):  # type: ignore[misc]
    """A detector under the names of PyOD: higher is more abnormal, and a share of the fitted nodes is abnormal.

    Arguments:
        detector: What to fit; default: ``DeGEM()``. It is cloned, never changed.
        contamination: The share of the fitted nodes that lies above ``threshold_``. It is not a false-alarm rate: for
            one use the detector's own ``predict``.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> from degem.detectors.features import ECOD
        >>> round(float(PyODDetector(ECOD(), contamination=0.2).fit(digits_graph()).labels_.mean()), 2)
        0.2
    """

    def __init__(self, detector: Detector | None = None, *, contamination: float = 0.1) -> None:
        self.detector = detector
        self.contamination = contamination

    def fit(self, X: Any, y: None = None) -> Self:
        """Fit a clone of the detector; ``decision_scores_``, ``threshold_`` and ``labels_`` are those of the graph."""
        self.detector_ = _fitted(self.detector, X)
        self.decision_scores_ = self.detector_.decision_function(X)
        self.threshold_ = float(np.quantile(self.decision_scores_, 1 - self.contamination))
        self.labels_ = (self.decision_scores_ > self.threshold_).astype(np.int64)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The detector's scores."""
        check_is_fitted(self)
        return self.detector_.decision_function(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 for nodes above ``threshold_``, else 0."""
        return (self.decision_function(X) > self.threshold_).astype(np.int64)


def _fitted(detector: Detector | None, graph: Any) -> Detector:
    fresh: Detector = DeGEM() if detector is None else clone(detector)
    return fresh.fit(graph)
