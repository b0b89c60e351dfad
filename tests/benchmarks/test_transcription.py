"""The transcription and the library's modules give the same losses for the same weights."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from degem import Graph
from degem.nn.encoders import MultiHopEncoder
from degem.nn.heads import Discriminator, MLPEnergy
from degem.ops.contrast import infomax_loss
from degem.ops.energy import contrastive_divergence
from degem.ops.features import row_normalize
from degem.ops.langevin import LangevinSettings
from degem.propagation.hop_features import hop_features
from degem.ops.readout import energy_readout

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import transcription

SETTINGS = transcription.Settings(num_hops=2, latent_dim=8, num_epochs=3, langevin_noise=0.0, condition_weight=0.7)


@pytest.fixture
def model(small_graph: Graph) -> transcription.Model:
    torch.manual_seed(0)
    made = transcription.Model(small_graph.num_features, small_graph.num_classes, SETTINGS)
    made.head_norm.running_var.uniform_(0.5, 2.0)
    return made.eval()


def library_encoder(model: transcription.Model) -> MultiHopEncoder:
    encoder = MultiHopEncoder(model.hops[0].in_features, SETTINGS.num_hops, SETTINGS.latent_dim).eval()
    with torch.no_grad():
        for hop, layer in enumerate(model.hops):
            encoder.hop_weight[hop] = layer.weight.T
            encoder.hop_bias[hop] = layer.bias
    encoder.fuse.load_state_dict(model.encoder.state_dict())
    return encoder


def library_head(model: transcription.Model) -> MLPEnergy:
    head = MLPEnergy(SETTINGS.latent_dim, SETTINGS.head_dim, condition_weight=0.7, batch_norm=True).eval()
    head.hidden.load_state_dict(model.head_in.state_dict())
    assert head.norm is not None
    head.norm.load_state_dict(model.head_norm.state_dict())
    head.out.load_state_dict(model.head_out.state_dict())
    return head


def both_hops(graph: Graph) -> tuple[list[torch.Tensor], torch.Tensor]:
    matrix = transcription.propagation_matrix(graph.adjacency, SETTINGS.self_weight)
    plain = transcription.hops_of(matrix, transcription.dense_features(graph), SETTINGS.num_hops)
    features = row_normalize(np.asarray(graph.features))
    fast = hop_features(graph.adjacency, features, SETTINGS.num_hops, self_weight=SETTINGS.self_weight)
    return plain, torch.from_numpy(fast)


def test_hops_and_latents(small_graph: Graph, model: transcription.Model) -> None:
    plain, fast = both_hops(small_graph)
    torch.testing.assert_close(torch.stack(plain), fast, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(model.encode(plain), library_encoder(model)(fast), rtol=1e-4, atol=1e-5)


def test_summary_and_energy_loss(model: transcription.Model) -> None:
    latents, chains, energies = torch.rand(30, 8), torch.rand(20, 8), torch.randn(30)
    summary = transcription.readout(latents, energies, 0.6)
    torch.testing.assert_close(summary, energy_readout(latents, energies, 0.6))
    head = library_head(model)
    plain = transcription.energy_loss(model.energy(latents, summary), model.energy(chains, summary), 1.0)
    torch.testing.assert_close(plain, contrastive_divergence(head(latents, summary), head(chains, summary), 1.0))


def test_contrastive_loss(model: transcription.Model) -> None:
    latents, corrupted, summary = torch.rand(30, 8), torch.rand(30, 8), torch.rand(8)
    critic = Discriminator(8)
    critic.load_state_dict({"weight": model.discriminator})
    plain = transcription.contrastive_loss(model, latents, corrupted, summary)
    torch.testing.assert_close(plain, infomax_loss(critic(latents, summary), critic(corrupted, summary)))


def test_chains(model: transcription.Model) -> None:
    start, summary = torch.rand(20, 8), torch.rand(8)
    settings = LangevinSettings(num_steps=SETTINGS.langevin_steps, step_size=1.0, noise_std=0.0)
    moved = library_head(model).sample(start, summary, settings, torch.Generator())
    torch.testing.assert_close(transcription.sample(model, start, summary), moved, rtol=1e-4, atol=1e-4)


def test_a_short_run_gives_one_finite_score_a_node(small_graph: Graph) -> None:
    epochs: list[int] = []
    model, summary = transcription.fit(small_graph, np.arange(60), SETTINGS, on_epoch=epochs.append)
    scores = transcription.score(model, summary, small_graph)
    assert epochs == [0, 1, 2]
    assert scores.shape == (120,)
    assert np.isfinite(scores).all()
