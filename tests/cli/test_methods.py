from __future__ import annotations

import json

from degem import Detector


def test_methods(run):
    rows = json.loads(run("methods", "--json").out)
    assert [row["name"] for row in rows] == sorted(Detector.registry)
    assert set(rows[0]) == {"name", "paper", "needs_labels", "needs_exposure"}
    assert next(row for row in rows if row["name"] == "oe")["needs_exposure"] is True
    assert "gnnsafe" in run("methods").out
