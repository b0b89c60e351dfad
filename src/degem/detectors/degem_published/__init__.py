"""DeGEM as published: Algorithm 1 of the paper, and the authors' release of it."""

from degem.detectors.degem_published.detector import DeGEMPublished as DeGEMPublished
