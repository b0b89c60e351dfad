"""The study of one-way edges: its propagations by hand, and a page that says what its rows say."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import torch


@pytest.fixture(scope="module")
def study() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "directed_edges.py"
    spec = importlib.util.spec_from_file_location("directed_edges", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["directed_edges"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_messages_go_along_edges_and_a_node_nobody_links_to_loses_half(study: ModuleType) -> None:
    energy = study.propagated(torch.tensor([4.0, 8.0, 16.0]), torch.tensor([[0, 1], [2, 2]]))
    assert energy.tolist() == [1.0, 2.0, 0.5 * (0.5 * 16 + 0.5 * 6) + 0.5 * 3.0]


def test_diffusion_keeps_ones_where_degrees_are_equal_and_loses_them_at_a_hub(study: ModuleType) -> None:
    ring = study.Wired.of(torch.ones(4, 1), torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]]))
    torch.testing.assert_close(study.diffused_ones(ring), torch.ones(4))
    leaves = torch.arange(1, 10)
    hub = torch.zeros(9, dtype=torch.long)
    star = torch.stack([torch.cat([leaves, hub]), torch.cat([hub, leaves])])
    spread = study.diffused_ones(study.Wired.of(torch.ones(10, 1), star))
    assert spread[0] > 1 > spread[1]


def test_the_page_sets_both_kinds_of_edges_beside_the_published_figure(study: ModuleType) -> None:
    rows = [
        {"dataset": "chameleon", "shift": "structure", "method": method, "edges": edges, "seed": 0, "auroc": auroc}
        for method in ("gnnsafe", "gpn-diffusion")
        for edges, auroc in (("directed", 35.0), ("symmetric", 99.0))
    ]
    text = study.page(pd.DataFrame(rows).assign(acc=[33.0, 54.0, None, None], last=[34.0, 98.0, None, None]))
    assert "| chameleon | structure | gnnsafe | 34.4 / 35.3 | 35.0 / 33.0 (34.0) | 99.0 / 54.0 (98.0) |" in text
    assert "| chameleon | structure | gpn-diffusion | 82.9 / 20.4 | 35.0 | 99.0 |" in text
