"""Public datasets by name. Raw files are only ever read; what is downloaded goes to the cache."""

from __future__ import annotations

import contextlib
import io
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from degem.data import readers
from degem.data.checksums import copy_official, is_pickled
from degem.data.locations import cache_root, data_root
from degem.data.readers import Reader, attributed, citation, heterophilous, pyg, twitch
from degem.errors import DataNotFoundError, DegemError, GraphError
from degem.files import replaced
from degem.graph import Graph


@dataclass(frozen=True)
class Dataset:
    """What is known of a dataset before it is read.

    Arguments:
        reader: From a root folder to a Graph.
        folder: The folder of its raw files below the root.
        files: The raw files that must be there.
        num_nodes: Nodes.
        num_edges: Undirected edges, without loops or repeats.
        num_features: Feature columns.
        num_classes: Classes; 0 for a graph without labels.
        homophily: The share of edges within a class; NaN without classes.
        downloads: Whether its loader still has somewhere to download from.
        public_split: Whether benchmarks use the split that comes with it.
        cut_class: The class t of the label shift: ID = labels > t, exposure = t, OOD = labels < t.
        stored_entries: Ordered pairs that its loader hands out, where they are one-way links; else both ways of each
            edge.
        note: What a reader of results should know.
    """

    reader: Reader
    folder: str
    files: tuple[str, ...]
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    homophily: float
    downloads: bool = True
    public_split: bool = False
    cut_class: int | None = None
    stored_entries: int | None = field(default=None, kw_only=True)
    note: str = field(default="", kw_only=True)


def _planetoid(name: str) -> tuple[Reader, str, tuple[str, ...]]:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{name}.{part}" for part in parts)
    return pyg("Planetoid", "Planetoid", name), f"Planetoid/{name}/raw", files


def _geom_gcn(splits: str) -> tuple[str, ...]:
    texts = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    return (*texts, *(f"{splits}_split_0.6_0.2_{index}.npz" for index in range(10)))


def _wikipedia(name: str) -> tuple[Reader, str, tuple[str, ...]]:
    reader = pyg("WikipediaNetwork", "WikipediaNetwork", name, geom_gcn_preprocess=True)
    return reader, f"WikipediaNetwork/{name}/geom_gcn/raw", _geom_gcn(name)


def _webkb(name: str) -> tuple[Reader, str, tuple[str, ...]]:
    return pyg("WebKB", "WebKB", name), f"WebKB/{name}/raw", _geom_gcn(name)


def _amazon(name: str) -> tuple[Reader, str, tuple[str, ...]]:
    return _archive("Amazon", name, f"amazon_electronics_{name.lower()}.npz")


def _archive(loader: str, name: str, file: str) -> tuple[Reader, str, tuple[str, ...]]:
    return attributed(loader, name, file), f"{loader}/{name}/raw", (file,)


def _twitch(country: str) -> tuple[Reader, str, tuple[str, ...]]:
    return twitch(country), f"Twitch/{country}/raw", (f"{country}.npz",)


def _platonov(name: str) -> tuple[Reader, str, tuple[str, ...]]:
    _, folder, files = _filtered(name)
    return pyg("HeterophilousGraphDataset", "HeterophilousGraph", name), folder, files


def _filtered(name: str) -> tuple[Reader, str, tuple[str, ...]]:
    return heterophilous(name), f"HeterophilousGraph/{name}/raw", (f"{name}.npz",)


def _citation(name: str) -> tuple[Reader, str, tuple[str, ...]]:
    return citation(name), "Citation/raw", (f"{name}.mat",)


_ARXIV = ("edge.csv.gz", "node-label.csv.gz", "node_year.csv.gz", "num-node-list.csv.gz", "num-edge-list.csv.gz")
_TWITCH = "3,170 multi-hot MUSAE features; the paper used 128-d ones that are no longer served"
_CITATION = "papers of several classes are unlabelled"
_DIGITS = "scikit-learn's digits joined to their ten nearest neighbours; no file is read"
_STRUCTURAL = "real edges, labels and years; structural features stand in for the real ones"

DATASETS: dict[str, Dataset] = {
    "cora": Dataset(*_planetoid("cora"), 2708, 5278, 1433, 7, 0.81, public_split=True, cut_class=3),
    "amazon-photo": Dataset(*_amazon("Photo"), 7650, 119081, 745, 8, 0.83, cut_class=4),
    "twitch-de": Dataset(*_twitch("DE"), 9498, 153138, 3170, 2, 0.63, downloads=False, note=_TWITCH),
    "twitch-en": Dataset(*_twitch("EN"), 7126, 35324, 3170, 2, 0.56, downloads=False, note=_TWITCH),
    "twitch-es": Dataset(*_twitch("ES"), 4648, 59382, 3170, 2, 0.58, downloads=False, note=_TWITCH),
    "twitch-fr": Dataset(*_twitch("FR"), 6551, 112666, 3170, 2, 0.56, downloads=False, note=_TWITCH),
    "twitch-pt": Dataset(*_twitch("PT"), 1912, 31299, 3170, 2, 0.57, downloads=False, note=_TWITCH),
    "twitch-ru": Dataset(*_twitch("RU"), 4385, 37304, 3170, 2, 0.62, downloads=False, note=_TWITCH),
    "arxiv": Dataset(
        readers.arxiv,
        "ogbn_arxiv/raw",
        (*_ARXIV, "node-feat.csv.gz"),
        *(169343, 1157799, 128, 40, 0.65),
        downloads=False,
    ),
    "arxiv-structural": Dataset(
        readers.arxiv_structural,
        "ogbn_arxiv/raw",
        _ARXIV,
        *(169343, 1157799, 33, 40, 0.65),
        downloads=False,
        note=_STRUCTURAL,
    ),
    "chameleon": Dataset(*_wikipedia("chameleon"), 2277, 31371, 2325, 5, 0.23, cut_class=1, stored_entries=36101),
    "actor": Dataset(
        pyg("Actor", "Actor"),
        "Actor/raw",
        _geom_gcn("film"),
        *(7600, 26659, 932, 5, 0.22),
        cut_class=1,
        stored_entries=30019,
    ),
    "cornell": Dataset(*_webkb("cornell"), 183, 277, 1703, 5, 0.12, cut_class=1, stored_entries=298),
    "citeseer": Dataset(*_planetoid("citeseer"), 3327, 4552, 3703, 6, 0.74, public_split=True, cut_class=2),
    "pubmed": Dataset(*_planetoid("pubmed"), 19717, 44324, 500, 3, 0.80, public_split=True, cut_class=0),
    "amazon-computers": Dataset(*_amazon("Computers"), 13752, 245861, 767, 10, 0.78, cut_class=4),
    "coauthor-cs": Dataset(
        *_archive("Coauthor", "CS", "ms_academic_cs.npz"), 18333, 81894, 6805, 15, 0.81, cut_class=4
    ),
    "squirrel": Dataset(*_wikipedia("squirrel"), 5201, 198353, 2089, 5, 0.22, cut_class=1, stored_entries=217073),
    "texas": Dataset(*_webkb("texas"), 183, 279, 1703, 5, 0.06, cut_class=1, stored_entries=325),
    "wisconsin": Dataset(*_webkb("wisconsin"), 251, 450, 1703, 5, 0.18, cut_class=1, stored_entries=515),
    "chameleon-filtered": Dataset(
        *_filtered("chameleon_filtered"), 890, 8854, 2325, 5, 0.24, downloads=False, cut_class=1
    ),
    "squirrel-filtered": Dataset(
        *_filtered("squirrel_filtered"), 2223, 46998, 2089, 5, 0.21, downloads=False, cut_class=1
    ),
    "citation-acm": Dataset(*_citation("acmv9"), 9360, 15556, 6775, 5, 0.88, downloads=False, note=_CITATION),
    "citation-dblp": Dataset(*_citation("dblpv7"), 5484, 8117, 6775, 5, 0.82, downloads=False, note=_CITATION),
    "citation-citation": Dataset(*_citation("citationv1"), 8935, 15098, 6775, 5, 0.87, downloads=False, note=_CITATION),
    "amazon-fraud": Dataset(
        readers.amazon_fraud,
        "AmazonFraud/raw",
        ("Amazon.mat",),
        *(10224, 175608, 25, 0, math.nan),
        downloads=False,
        note="no classes; the column is_fraud tells the 693 frauds",
    ),
    "digits": Dataset(readers.digits, "", (), 1797, 12340, 64, 10, 0.96, cut_class=3, note=_DIGITS),
    "roman-empire": Dataset(*_platonov("roman_empire"), 22662, 32927, 300, 18, 0.05, cut_class=4),
    "amazon-ratings": Dataset(*_platonov("amazon_ratings"), 24492, 93050, 300, 5, 0.38, cut_class=1),
}
ALIASES = {"twitch": "twitch-de", "ogbn-arxiv": "arxiv", "photo": "amazon-photo"}


def dataset_name(name: str) -> str:
    """The one spelling of a dataset's name, from any case and any alias.

    Example:
        >>> dataset_name("ogbn-Arxiv")
        'arxiv'
    """
    key = ALIASES.get(name.lower(), name.lower())
    if key not in DATASETS:
        raise DegemError(f"there is no dataset {name!r}: known are {', '.join(DATASETS)}")
    return key


def describe(name: str) -> Dataset:
    """What is known of the dataset called ``name``.

    Example:
        >>> describe("Cora").num_nodes
        2708
    """
    return DATASETS[dataset_name(name)]


def missing_files(name: str, data_dir: str | Path | None = None) -> list[Path]:
    """The raw files of a dataset that are not below the root; none where it is whole in the cache."""
    dataset = describe(name)
    return _missing(dataset, data_root(data_dir)) if _missing(dataset, _downloads()) else []


def what_to_put_where(missing: Sequence[Path]) -> str:
    """What to do about missing files of one folder.

    Example:
        >>> what_to_put_where([Path("data/Twitch/DE/raw/DE.npz")])
        'put DE.npz into data/Twitch/DE/raw'
    """
    return f"put {', '.join(path.name for path in missing)} into {missing[0].parent}"


def _missing(dataset: Dataset, root: Path) -> list[Path]:
    folder = root / dataset.folder
    return [folder / file for file in dataset.files if not (folder / file).is_file()]


def _downloads() -> Path:
    return cache_root() / "raw"


def load_dataset(name: str, data_dir: str | Path | None = None) -> Graph:
    """The graph of a public dataset: symmetric edges, raw features, labels and, where it has one, its public split.

    Arguments:
        name: One of ``DATASETS``; ``twitch`` is its German graph.
        data_dir: The folder of raw files. Default: ``$DEGEM_DATA``, else ``raw`` in the cache. It is only read.
    """
    return _read(name, describe(name), _raw_folder(name, data_dir))


def _raw_folder(name: str, data_dir: str | Path | None) -> Path:
    """Where the raw files are: below the root, else in the cache, downloaded if need be."""
    dataset = describe(name)
    missing = _missing(dataset, data_root(data_dir))
    if not missing:
        return data_root(data_dir) / dataset.folder
    if _missing(dataset, _downloads()):
        _download(name, dataset, _downloads(), missing)
    return _downloads() / dataset.folder


def _read(name: str, dataset: Dataset, folder: Path) -> Graph:
    """Run the reader on links to the raw files: loaders write beside them, and the raw folder is not ours."""
    with tempfile.TemporaryDirectory(prefix="degem-") as staging:
        links = Path(staging) / dataset.folder
        links.mkdir(parents=True, exist_ok=True)
        for file in dataset.files:
            if is_pickled(file):
                copy_official(folder / file, links / file)
            else:
                (links / file).symlink_to((folder / file).resolve())
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # PyG says "Processing..." there
                return dataset.reader(Path(staging))
        except Exception as error:  # whatever a loader raises on a file that is cut short
            if isinstance(error, DegemError) and not isinstance(error, GraphError):
                raise
            reason = " ".join(str(error).split())
            raise GraphError(
                f"dataset {name}: the files in {folder} cannot be read ({reason}): are they whole? Put them there anew"
            ) from None


def _download(name: str, dataset: Dataset, root: Path, missing: Sequence[Path]) -> None:
    """Let the loader fetch the raw files into the cache, or say in one line which files to put where."""
    reason = "its download is gone or needs files by hand"
    if dataset.downloads and not any(map(is_pickled, dataset.files)):  # a loader unpickles as soon as it has the file
        try:
            with tempfile.TemporaryDirectory(prefix="degem-") as staging, contextlib.redirect_stderr(io.StringIO()):
                dataset.reader(Path(staging))
                target = root / dataset.folder
                target.mkdir(parents=True, exist_ok=True)
                for file in dataset.files:
                    with replaced(target / file) as copy:
                        copy.write((Path(staging) / dataset.folder / file).read_bytes())
            return
        except Exception as error:  # whatever a loader's network layer raises
            reason = f"its download failed ({type(error).__name__})"
    raise DataNotFoundError(f"dataset {name}: {reason}; {what_to_put_where(missing)} (or set DEGEM_DATA)")
