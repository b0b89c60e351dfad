"""DeGEM: a multi-hop encoder trained by graph contrast, and an energy head trained by maximum likelihood."""

from degem.detectors.degem.detector import DeGEM as DeGEM
