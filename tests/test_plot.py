"""Plots return the axes they drew on, with what they were asked to draw."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from degem import plot
from degem.errors import DegemError

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def scored() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 4 == 0
    return rng.standard_normal(400) + 2 * truth, truth


def test_histogram_draws_shares_and_the_threshold(scored) -> None:
    scores, truth = scored
    ax = plot.histogram(scores, calibration=scores[~truth], is_ood=truth, threshold=1.5)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert set(names) == {"ID nodes", "OOD nodes", "calibration nodes", "threshold"}
    heights = [bar.get_height() for bar in ax.containers[0]]
    assert sum(heights) == pytest.approx(1)


def test_histogram_leaves_out_an_infinite_threshold(scored) -> None:
    assert not plot.histogram(scored[0], threshold=float("inf")).lines


def test_roc_curves_share_axes(scored) -> None:
    scores, truth = scored
    ax = plot.roc(scores, truth, label="good")
    assert plot.roc(-scores, truth, label="bad", ax=ax) is ax
    good, bad = (float(text.get_text().split()[-1][:-1]) for text in ax.get_legend().get_texts())
    assert good > 80
    assert good + bad == pytest.approx(100, abs=0.11)


@pytest.mark.parametrize("colouring", ["is_ood", "scores", None])
def test_map_draws_every_node(scored, colouring) -> None:
    scores, truth = scored
    latents = np.random.default_rng(1).standard_normal((400, 5))
    chosen = {"is_ood": truth, "scores": scores}
    ax = plot.latent_map(latents, **({colouring: chosen[colouring]} if colouring else {}))
    assert sum(len(points.get_offsets()) for points in ax.collections) == 400


def test_ablation_stresses_the_best_variant() -> None:
    ax = plot.ablation({"full": [90, 92], "less": 80.0})
    colours = [mpl.colors.to_hex(bar.get_facecolor()) for bar in ax.patches]
    assert colours == [plot.OOD_COLOUR, plot.ID_COLOUR]
    assert [bar.get_width() for bar in ax.patches] == [91, 80]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.histogram([]),
        lambda: plot.histogram([np.nan]),
        lambda: plot.roc([1.0, 2.0], [1]),
        lambda: plot.latent_map([[1.0, 2.0]]),
        lambda: plot.ablation({}),
    ],
)
def test_what_cannot_be_drawn_is_an_error(draw) -> None:
    with pytest.raises(DegemError):
        draw()
