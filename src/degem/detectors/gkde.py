"""Subjective-logic GCN with a graph-kernel Dirichlet prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence

from degem.detectors.backbone import GCNDetector, Layers, Losses
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.graph_kernel import kernel_evidence
from degem.ops.losses import squared_error_risk, vacuity
from degem.parameters import Count, NonNegative, Positive, Width
from degem.training import History, OnProgress, seeded

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN


@dataclass(kw_only=True, eq=False)
class GKDE(GCNDetector):
    r"""The vacuity :math:`C / \sum_c \alpha_c` of a GCN that gives evidence (Zhao et al. 2020).

    A teacher, a plain GCN with class probabilities :math:`\hat p`, is trained first; then the student, with logits
    :math:`g` and :math:`\alpha = 1 + e^g`, on

    .. math:: \overline{\text{risk}(\alpha_i, y_i)}
        + \lambda_1 \overline{\mathrm{KL}(\mathrm{Dir}(\alpha_i) \,\|\, \mathrm{Dir}(\hat\alpha_i))}
        + \min(1, t / 200) \, \overline{\mathrm{KL}(\alpha_i / S_i \,\|\, \hat p_i)} / C

    with the squared-error risk over training nodes, the other means over all nodes, and the prior :math:`\hat\alpha =
    1 +` :func:`~degem.ops.graph_kernel.kernel_evidence`. Settings are those of the authors' program for OOD
    detection; as in GPN's and GNNSafe's benchmarks dropout is off when scoring, where the authors average 100
    samples.

    Arguments:
        prior_weight: The weight :math:`\lambda_1` of the prior.
        bandwidth: The width :math:`\sigma` of the kernel.
        num_teacher_epochs: Full-batch steps of the teacher.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    hidden_dim: Width = 16
    num_epochs: Count = 400
    num_teacher_epochs: Count = 200
    prior_weight: NonNegative = 0.1
    bandwidth: Positive = 1.0

    name = "gkde"

    def _trained(self, training: TrainingSet, on_progress: OnProgress) -> tuple[GCN, History]:
        inputs = self._tensors(training.graph)
        with seeded(training.seed):
            teacher, student = (self._new_network(training.num_classes) for _ in range(2))
            plain = self._losses(teacher, training)
            taught = self._optimise(teacher, inputs, plain, self.num_teacher_epochs, on_progress)
            with torch.no_grad():
                advice = teacher(inputs.features, inputs.adjacency).log_softmax(dim=1)
            self.network_ = student  # the oracle scores it while it trains
            learnt = self._optimise(student, inputs, self._advised(advice, training), self.num_epochs, on_progress)
        return student, {**{f"teacher_{name}": values for name, values in taught.items()}, **learnt}

    def _advised(self, advice: Tensor, training: TrainingSet) -> Losses:
        """The student's losses, given the log-probabilities of the teacher."""
        graph, labelled = training.graph, training.labelled_nodes
        nodes, labels = self._labelled(training)
        evidence = kernel_evidence(
            graph.adjacency, labelled, graph.labels[labelled], training.num_classes, bandwidth=self.bandwidth
        )
        # In double precision: where evidence is large, rounding makes a divergence negative, and growth a reward.
        prior = Dirichlet(1 + torch.from_numpy(evidence).double().to(self.device))

        def losses(logits: Tensor, epoch: int) -> dict[str, Tensor]:
            alpha = _dirichlet(logits)
            p = alpha / alpha.sum(dim=1, keepdim=True)
            return {
                "classification": squared_error_risk(alpha[nodes], labels).mean(),
                "prior": self.prior_weight * kl_divergence(Dirichlet(alpha.double()), prior).mean().float(),
                "teacher": min(1.0, epoch / 200) * (p * (p.log() - advice)).mean(),
            }

        return losses

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return vacuity(_dirichlet(layers.logits.double()))

    def _probabilities(self, layers: Layers) -> Tensor:
        alpha = _dirichlet(layers.logits.double())
        return alpha / alpha.sum(dim=1, keepdim=True)


def _dirichlet(logits: Tensor) -> Tensor:
    return 1 + logits.exp()
