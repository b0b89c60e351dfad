"""A store on an S3-compatible server, moto's own on loopback, in a process that ends with the test."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import fs

from degem import DeGEM, Graph
from degem.engine import Ray, Store
from degem.engine.store import cache_folder
from degem.errors import DegemError
from degem.propagation import Columns, Propagator, choose_propagator

SERVER = Path(__file__).parents[2] / ".venv-s3" / "bin" / "moto_server"
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(not SERVER.exists(), reason="no S3 server here: see scripts/install-s3-server"),
]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URI of a bucket, up to its folder, and what comes behind that."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [SERVER, "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(100):
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            uri = "s3://key:secret@runs{}?scheme=http&region=us-east-1&endpoint_override=127.0.0.1%3A" + str(port)
            fs.FileSystem.from_uri(uri.format("") + "&allow_bucket_creation=true")[0].create_dir("runs")
            yield uri
        finally:
            server.kill()


def test_hops_and_scores_are_those_of_one_machine(cluster: Any, bucket: str, small_graph: Graph) -> None:
    values = np.random.default_rng(0).standard_normal((120, 40)).astype(np.float32)
    with Propagator().keep(small_graph.adjacency, Columns.of(values), (0, 2, 3)) as kept:
        whole = kept.rows(slice(0, 120))
    alone = DeGEM(num_epochs=2).fit(small_graph).decision_function(small_graph)
    uri, written = bucket.format("/first"), []
    for _ in range(2):  # the second time all of it is there
        with Ray(uri, cluster.address) as engine:
            with choose_propagator(0).keep(small_graph.adjacency, Columns.of(values), (0, 2, 3)) as kept:
                np.testing.assert_array_equal(kept.rows(slice(3, 50)), whole[:, 3:50])
            scores = DeGEM(num_epochs=2).fit(small_graph).decision_function(small_graph)
        np.testing.assert_allclose(scores, alone, rtol=1e-5, atol=1e-5)
        written.append(engine.moved.total())
    assert written[0] > 0
    assert written[1] == 0
    assert not cache_folder(uri).exists()


def test_arrays_are_read_by_rows_and_what_is_missing_is_one_line_without_the_secret(bucket: str) -> None:
    store = Store(bucket.format("/second"))
    array = np.arange(24, dtype=np.float32).reshape(6, 2, 2)
    store.write("a/b", array)
    assert store.names("a/") == {"a/b"}
    assert store.has("a/b")
    assert not store.has("a/c")
    np.testing.assert_array_equal(store.rows("a/b", slice(2, 4)), array[2:4])
    np.testing.assert_array_equal(store.array("a/b"), array)
    with pytest.raises(DegemError, match=r"s3://runs/second.*a/c cannot be read") as error:
        store.rows("a/c", slice(0, 1))
    assert "secret" not in str(error.value)
