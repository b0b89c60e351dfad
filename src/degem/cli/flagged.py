"""What there is to say of how many nodes were flagged: far too many, or none."""

from __future__ import annotations

import math

FAR = 2.0  # times alpha: a flagged share beyond it is worth a word
RARE = 1e-3  # if chance alone does so more rarely than this


def why_none(smallest: float, num_nodes: int, fdr: float, num_calibration: int) -> str:
    r"""Why Benjamini–Hochberg flags no node: one alone is flagged at :math:`p \le q/m`, and :math:`p \ge 1/(n+1)`.

    Arguments:
        smallest: The smallest p-value.
        num_nodes: The number of judged nodes :math:`m`.
        fdr: The false discovery rate :math:`q`.
        num_calibration: The number of calibration nodes :math:`n`.

    Example:
        >>> why_none(0.01, 100, 0.1, 99)
        '--fdr 0.1 flags none of 100 nodes: 99 calibration nodes give no p-value below 1/100 = 0.01, and a single node
        is flagged at 0.1/100 = 0.001: 999 calibration nodes would do, or fewer nodes to judge (--new-since, --nodes)'
    """
    from degem.calibration import nodes_needed

    needed = nodes_needed(fdr / num_nodes)
    told = f"--fdr {fdr:g} flags none of {num_nodes:,} nodes"
    if num_calibration >= needed:
        return f"{told}: the smallest p-value, {smallest:.2g}, is too large"
    return (
        f"{told}: {num_calibration:,} calibration nodes give no p-value below 1/{num_calibration + 1} = "
        f"{1 / (num_calibration + 1):.2g}, and a single node is flagged at {fdr:g}/{num_nodes} = "
        f"{fdr / num_nodes:.2g}: {needed:,} calibration nodes would do, or fewer nodes to judge (--new-since, --nodes)"
    )


def chance_of(flagged: int, num_nodes: int, alpha: float, num_calibration: int) -> float:
    r"""The chance that as many nodes are flagged, or more, if all are exchangeable with the calibration nodes.

    Of :math:`m` nodes :math:`\mathrm{BetaBinomial}(m, k, n + 1 - k)` are flagged, :math:`k = \lfloor\alpha (n + 1)
    \rfloor`: of all orders of the :math:`n + m` scores each is as likely (Bates et al., *Testing for outliers with
    conformal p-values*, 2023).

    Arguments:
        flagged: How many are flagged.
        num_nodes: The number of judged nodes :math:`m`.
        alpha: The false-alarm rate.
        num_calibration: The number of calibration nodes :math:`n`.

    Example:
        >>> round(chance_of(1, 1, 0.05, 99), 6)
        0.05
    """
    from scipy.stats import betabinom

    rank = math.floor(alpha * (num_calibration + 1) + 1e-9)
    if rank == 0:
        return float(flagged == 0)
    return max(0.0, float(betabinom.sf(flagged - 1, num_nodes, rank, num_calibration + 1 - rank)))


def why_many(flagged: int, num_nodes: int, alpha: float, num_calibration: int) -> str | None:
    """What to say, and to do, where far more are flagged than the promise has it; None where they are not.

    Arguments as in :func:`chance_of`.

    Example:
        >>> why_many(8, 100, 0.05, 99)  # nothing strange: None
        >>> str(why_many(40, 100, 0.05, 99))[:73]
        '40.0% of 100 nodes are flagged, and --alpha 0.05 promises 5.0% of in-dist'
    """
    if flagged <= FAR * alpha * num_nodes:
        return None
    chance = chance_of(flagged, num_nodes, alpha, num_calibration)
    if chance > RARE:
        return None
    odds = f"1 in {1 / chance:,.0f}" if chance > 1e-9 else "less than 1 in a billion"
    return (
        f"{flagged / num_nodes:.1%} of {num_nodes:,} nodes are flagged, and --alpha {alpha:g} promises {alpha:.1%} of "
        f"in-distribution ones; with {num_calibration:,} calibration nodes the odds of that by chance are {odds}: many "
        "nodes are OOD, or the graph has drifted (degem compare tests it; degem calibrate with nodes known to be "
        "in-distribution, or degem update, makes up for it)"
    )
