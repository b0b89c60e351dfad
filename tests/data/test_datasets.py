import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from degem.data.datasets import DATASETS, describe, load_dataset, missing_files
from degem.errors import DataNotFoundError, DegemError, GraphError

HERE = ["cora", "amazon-photo", "twitch-de", "twitch-ru", "chameleon", "actor", "cornell"]
HERE += ["citation-acm", "citation-dblp", "citation-citation", "amazon-fraud", "digits"]


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", HERE)
def test_real_datasets_have_the_statistics_they_are_listed_with(name: str, data_dir: Path) -> None:
    about, graph = describe(name), load_dataset(name, data_dir)
    counts = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
    assert counts == (about.num_nodes, about.num_edges, about.num_features, about.num_classes)
    assert graph.homophily() == pytest.approx(about.homophily, abs=0.006, nan_ok=True)


def test_cora_keeps_its_public_split(data_dir: Path) -> None:
    masks = load_dataset("cora", data_dir).masks
    assert [int(masks[part].sum()) for part in ("train", "val", "test")] == [140, 500, 1000]


def test_papers_of_several_classes_are_unlabelled(data_dir: Path) -> None:
    graph = load_dataset("citation-acm", data_dir)
    assert int((~graph.labelled).sum()) == 581


def test_frauds_are_told_in_a_column_and_not_by_labels(data_dir: Path) -> None:
    graph = load_dataset("amazon-fraud", data_dir)
    assert not graph.labelled.any()
    assert int(graph.columns["is_fraud"].sum()) == 693
    assert graph.features.max() == 5525


def test_nothing_is_written_into_the_data_folder(data_dir: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    folder = root / DATASETS["cornell"].folder
    folder.mkdir(parents=True)
    for file in DATASETS["cornell"].files:
        (folder / file).write_bytes((data_dir / DATASETS["cornell"].folder / file).read_bytes())
    for path in (folder, folder.parent, root):
        path.chmod(0o555)
    before = sorted(root.rglob("*"))
    load_dataset("cornell", root)
    assert sorted(root.rglob("*")) == before
    for path in (root, folder.parent, folder):
        path.chmod(0o755)


def test_a_missing_file_is_named_in_one_line_with_its_folder(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError) as caught:
        load_dataset("twitch", tmp_path)
    text = str(caught.value)
    assert "DE.npz" in text
    assert str(tmp_path / "Twitch" / "DE" / "raw") in text
    assert "\n" not in text


def test_a_download_that_fails_is_the_same_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise ConnectionError("no route")

    broken = dataclasses.replace(DATASETS["texas"], reader=refuse)
    monkeypatch.setitem(DATASETS, "texas", broken)
    with pytest.raises(DataNotFoundError) as caught:
        load_dataset("texas", tmp_path)
    for file in DATASETS["texas"].files:
        assert file in str(caught.value)


def test_a_file_that_is_cut_short_is_told_with_its_folder(data_dir: Path, tmp_path: Path, private_cache: Path) -> None:
    for name in ("twitch-de", "cornell"):
        folder = tmp_path / DATASETS[name].folder
        folder.mkdir(parents=True)
        for file in DATASETS[name].files:
            (folder / file).write_bytes((data_dir / DATASETS[name].folder / file).read_bytes()[:200])
        with pytest.raises(GraphError) as caught:
            load_dataset(name, tmp_path)
        assert f"dataset {name}: the files in {folder} cannot be read" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_root_is_the_argument_then_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEGEM_DATA", str(tmp_path / "env"))
    files = DATASETS["cornell"].files
    assert missing_files("cornell") == [tmp_path / "env" / "WebKB/cornell/raw" / file for file in files]
    given = missing_files("cornell", tmp_path / "given")
    assert given == [tmp_path / "given" / "WebKB/cornell/raw" / file for file in files]


def test_a_dataset_that_was_downloaded_into_the_cache_is_here(tmp_path: Path, private_cache: Path) -> None:
    about = DATASETS["twitch-de"]
    folder = private_cache / "raw" / about.folder
    folder.mkdir(parents=True)
    assert missing_files("twitch", tmp_path / "empty") == [tmp_path / "empty" / about.folder / "DE.npz"]
    (folder / "DE.npz").write_bytes(b"")
    assert missing_files("twitch", tmp_path / "empty") == []


def test_no_code_runs_from_a_pickled_raw_file(data_dir: Path, tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "ran",)

    folder = tmp_path / DATASETS["cora"].folder
    folder.mkdir(parents=True)
    for file in DATASETS["cora"].files:
        (folder / file).write_bytes((data_dir / DATASETS["cora"].folder / file).read_bytes())
    (folder / "ind.cora.x").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(GraphError, match=r"ind\.cora\.x is not the official file"):
        load_dataset("cora", tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_processed_file_beside_the_raw_ones_is_not_even_looked_at(data_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / DATASETS["cornell"].folder
    folder.mkdir(parents=True)
    for file in DATASETS["cornell"].files:
        (folder / file).write_bytes((data_dir / DATASETS["cornell"].folder / file).read_bytes())
    (folder.parent / "processed").mkdir()
    for name in ("data.pt", "pre_filter.pt", "pre_transform.pt"):
        (folder.parent / "processed" / name).write_bytes(b"not even a pickle")
    assert load_dataset("cornell", tmp_path).num_nodes == 183


def test_index_arrays_of_a_raw_archive_are_checked(data_dir: Path, tmp_path: Path) -> None:
    about = DATASETS["amazon-photo"]
    source, folder = data_dir / about.folder / about.files[0], tmp_path / about.folder
    folder.mkdir(parents=True)
    with np.load(source) as archive:
        arrays = {name: archive[name] for name in archive.files if archive[name].dtype != object}
    arrays["adj_indices"][5] = 10**6
    np.savez(folder / about.files[0], **arrays)
    with pytest.raises(GraphError, match="indices lie outside"):
        load_dataset("amazon-photo", tmp_path)


def test_index_arrays_of_a_matlab_file_are_checked(tmp_path: Path) -> None:
    network = sp.csc_array(np.eye(3))
    network.indices = np.array([0, 1, 10**6], dtype=np.int32)
    folder = tmp_path / DATASETS["citation-acm"].folder
    folder.mkdir(parents=True)
    savemat(folder / "acmv9.mat", {"network": network, "attrb": np.eye(3), "group": np.eye(3)})
    with pytest.raises(GraphError, match="outside"):
        load_dataset("citation-acm", tmp_path)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DegemError, match="cora"):
        describe("corra")


def write_ogb(root: Path, *, with_features: bool) -> None:
    """A graph of five nodes in OGB's raw format."""
    tables = {
        "edge": "0,1\n1,2\n2,3\n3,4\n",
        "num-node-list": "5\n",
        "num-edge-list": "4\n",
        "node-label": "0\n1\n0\n1\n2\n",
        "node_year": "2012\n2015\n2016\n2018\n2020\n",
    }
    if with_features:
        tables["node-feat"] = "".join(f"{row}.5,-1.0\n" for row in range(5))
    folder = root / "ogbn_arxiv" / "raw"
    folder.mkdir(parents=True)
    for name, text in tables.items():
        with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
            file.write(text)


def test_arxiv_is_read_from_ogbs_raw_files(tmp_path: Path) -> None:
    write_ogb(tmp_path, with_features=True)
    graph = load_dataset("arxiv", tmp_path)
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (5, 4, 2)
    np.testing.assert_array_equal(graph.features[:, 0], np.arange(5) + 0.5)
    np.testing.assert_array_equal(graph.columns["year"], [2012, 2015, 2016, 2018, 2020])
    np.testing.assert_array_equal(graph.labels, [0, 1, 0, 1, 2])


def test_arxiv_without_features_says_which_file_and_the_structural_one_works(tmp_path: Path) -> None:
    write_ogb(tmp_path, with_features=False)
    with pytest.raises(DataNotFoundError, match=r"node-feat\.csv\.gz"):
        load_dataset("arxiv", tmp_path)
    graph = load_dataset("arxiv-structural", tmp_path)
    np.testing.assert_allclose(graph.features[:, 0], np.log1p([1, 2, 2, 2, 1]), rtol=1e-6)


def test_filtered_graphs_are_read_without_unpickling(tmp_path: Path) -> None:
    folder = tmp_path / "HeterophilousGraph" / "chameleon_filtered" / "raw"
    folder.mkdir(parents=True)
    arrays = {"node_features": np.eye(3), "edges": np.array([[0, 1], [1, 2]]), "node_labels": np.array([0, 1, 0])}
    np.savez(folder / "chameleon_filtered.npz", **arrays)
    assert load_dataset("chameleon-filtered", tmp_path).num_edges == 2
    np.savez(folder / "chameleon_filtered.npz", **{**arrays, "node_labels": np.array([0, None, 1], dtype=object)})
    with pytest.raises(GraphError, match="not that of a plain array"):
        load_dataset("chameleon-filtered", tmp_path)


def test_sparse_features_stay_sparse(data_dir: Path) -> None:
    assert isinstance(load_dataset("cornell", data_dir).features, sp.csr_array)


def test_the_data_folder_of_this_machine_is_read_only_safe(data_dir: Path) -> None:
    load_dataset("cornell", data_dir)
    assert not (data_dir / "WebKB" / "cornell" / "processed").exists()
    assert [path.name for path in (data_dir / "WebKB" / "cornell").iterdir()] == ["raw"]
