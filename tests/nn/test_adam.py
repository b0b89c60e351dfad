import subprocess
import sys

import torch
from torch import nn

from degem.checkpoint import Checkpoints
from degem.nn.adam import Adam


def steps(model: nn.Module, optimizer, count: int) -> list[torch.Tensor]:
    torch.manual_seed(1)
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_steps_are_those_of_torch():
    ours, theirs = model(), model()
    found = steps(ours, Adam(ours.parameters(), lr=0.01, weight_decay=0.1), 20)
    expected = steps(theirs, torch.optim.Adam(theirs.parameters(), lr=0.01, weight_decay=0.1, fused=True), 20)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_a_parameter_without_gradient_stays():
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = Adam([unused, used], lr=0.1)
    used.sum().backward()
    optimizer.step()
    assert torch.equal(unused, torch.ones(2))
    assert (used < 1).all()


def test_a_checkpoint_keeps_its_state(tmp_path):
    whole, half = model(), model()
    optimizer = Adam(half.parameters(), lr=0.01)
    expected = steps(whole, other := Adam(whole.parameters(), lr=0.01), 3)
    expected = steps(whole, other, 3)
    steps(half, optimizer, 3)
    Checkpoints(tmp_path, "key").save("train", 3, {"model": half, "optimizer": optimizer}, {})
    again = model()
    resumed = Adam(again.parameters(), lr=0.01)
    Checkpoints(tmp_path, "key", resume=True).restore("train", {"model": again, "optimizer": resumed})
    assert all(torch.equal(one, two) for one, two in zip(steps(again, resumed, 3), expected, strict=True))


def test_it_does_not_import_the_compiler():
    code = (
        "import sys, torch; from degem.nn.adam import Adam\n"
        "point = torch.nn.Parameter(torch.ones(2)); optimizer = Adam([point], lr=0.1)\n"
        "point.sum().backward(); optimizer.step(); optimizer.zero_grad(); print('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
