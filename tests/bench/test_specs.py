import json
from pathlib import Path

import pytest

from degem import Detector
from degem.bench.paper import Cell, published
from degem.bench.specs import SIMPLE, TRIVIAL, Task, Variant, narrowed, parse_seeds, read_spec, spec_names, tasks_of
from degem.errors import DegemError, ParameterError


def test_every_table_of_the_issue_is_there() -> None:
    assert {"main", "label-rate", "ablation", "gcl", "homophily", "time"} <= set(spec_names())


@pytest.mark.parametrize("name", ["main", "label-rate", "ablation", "gcl", "homophily"])
def test_rows_of_a_table_are_called_as_in_the_paper(name: str) -> None:
    spec = read_spec(name)
    known = published()
    for variant in spec.variants:
        cells = [cell for cell in known if cell.table == spec.published and cell.row == variant.name]
        if variant.name in {
            *SIMPLE,
            "degree",
            "nonzeros",
            "norm",
            "degem-published",  # the paper's figures stand beside degem
            "knn",
            "grasp",
            "nodesafe",
            "gold",
            "energydef",
            "rsl",
            "latent-ebm",
            "learner",
            "exposed",
        }:
            assert not cells
        else:
            assert cells, variant.name
            assert {cell.dataset for cell in cells} == set(spec.datasets)


def test_published_figures_are_complete() -> None:
    assert len(published()) == 621
    assert published()[Cell("homophily", "synthetic-cora-0.2", "feature", "gnnsafe")]["auroc"] > 60
    assert published()[Cell("ablation", "cora", "label", "mle_energy+gcl+mh")]["auroc"] > 90
    assert published()[Cell("label_rate", "cora", "label", "degem", 0.1)]["auroc"] > 90


def test_seeds() -> None:
    assert parse_seeds("5") == (0, 1, 2, 3, 4)
    assert parse_seeds("11,12") == (11, 12)
    assert parse_seeds("7,") == (7,)
    for text in ("x", "", "-1"):
        with pytest.raises(ParameterError):
            parse_seeds(text)


@pytest.mark.parametrize("text", ["0", "00"])
def test_no_seed_at_all_is_a_mistake(text: str) -> None:
    with pytest.raises(ParameterError, match="0,"):
        parse_seeds(text)
    assert parse_seeds("0,") == (0,)


@pytest.mark.parametrize("name", spec_names())
def test_detectors_that_learn_nothing_stand_in_every_table(name: str) -> None:
    methods = [variant.method for variant in read_spec(name).variants]
    assert [methods.count(trivial) for trivial in TRIVIAL] == [1, 1, 1]


def test_a_task_is_made_once_even_if_two_tables_need_it() -> None:
    specs = [
        narrowed(read_spec(name), methods=["energy"], datasets=["cora"], seeds=(0,)) for name in ("main", "ablation")
    ]
    tasks = tasks_of(specs, "strict")
    assert sorted(task.shift for task in tasks) == ["feature", "label", "structure"]


def test_the_ablation_changes_the_papers_own_training() -> None:
    variants = {variant.name: variant.detector() for variant in read_spec("ablation").variants}
    published = Detector.registry["degem-published"]()
    assert variants["mle_energy+gcl+mh+ce+ero"].get_params() == published.get_params()
    bare = variants["mle_energy+gcl"].get_params()
    differing = {name for name, value in published.get_params().items() if bare[name] != value}
    assert differing == {"multi_hop", "condition_weight", "energy_readout_weight"}


def test_parameters_tell_every_setting_apart() -> None:
    def text(rate: float = 1.0, **changes: object) -> str:
        return Task(Variant("degem", "degem", changes), "cora", "label", 0, "strict", rate).parameters

    usual = Detector.registry["degem"]().get_params()["num_hops"]
    assert len({text(), text(0.5), text(num_hops=usual + 1), text(langevin__num_steps=3)}) == 4
    assert text() == text(num_hops=usual)
    assert json.loads(text(num_hops=usual + 1))["set"] == {"num_hops": usual + 1}


def test_datasets_are_spelt_as_rows_are_whatever_was_asked_for(tmp_path: Path) -> None:
    spec = narrowed(read_spec("main"), datasets=["Cora", "Twitch", "cora", "ogbn-arxiv"])
    assert spec.datasets == ("cora", "twitch", "arxiv")
    (tmp_path / "own.toml").write_text('datasets = ["Photo"]\nmethods = ["msp"]\n')
    assert read_spec(str(tmp_path / "own.toml")).datasets == ("amazon-photo",)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(DegemError, match="main"):
        read_spec("mian")
    (tmp_path / "odd.toml").write_text('datasets = ["cora"]\nmethod = ["degem"]\n')
    with pytest.raises(DegemError, match="unknown method"):
        read_spec(str(tmp_path / "odd.toml"))
    with pytest.raises(ParameterError, match="no method"):
        narrowed(read_spec("main"), methods=["degemm"])
    with pytest.raises(DegemError, match="no shift 'bogus': known are structure"):
        narrowed(read_spec("main"), shifts=["bogus"])
    with pytest.raises(ParameterError, match="cornell has structure, feature, label"):
        tasks_of([narrowed(read_spec("main"), datasets=["cornell"], shifts=["ES"])], "strict")
    with pytest.raises(ParameterError, match="protocol"):
        tasks_of([read_spec("main")], "lenient")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('methods = ["degem"]', "it lacks datasets"),
        ('datasets = ["cora"]', "it has no row: add methods"),
        ('datasets = ["cora"]\nmethods = ["degemm"]', "no method 'degemm': choose from degem, "),
        (
            'datasets = ["cora"]\n[[variants]]\nname = "two"\nmethod = "degemm"',
            "no method 'degemm': choose from degem, ",
        ),
        ('datasets = ["cora"]\n[[variants]]\nmethod = "degem"', "a variant lacks name"),
        (
            'datasets = ["cora"]\n[[variants]]\nname = "a"\nmethod = "degem"\nsets = {}',
            "unknown sets; a variant may have",
        ),
        ('datasets = ["cora"]\nmethods = ["degem"]\nshifts = ["bogus"]', "no shift 'bogus'"),
        ('datasets = ["corra"]\nmethods = ["degem"]', "no dataset 'corra'"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nseeds = 0', "seeds are"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nseeds = "x"', "seeds are how many (5 is 0 to 4)"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nseeds = 2.5', "seeds = 2.5: it may be how many"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nseeds = [11, 12]', "seeds = [11, 12]: it may be how many"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nseeds = true', "seeds = True: it may be"),
        ('datasets = "cora"\nmethods = ["degem"]', "datasets = 'cora': it may be a list such as"),
        ('datasets = [1]\nmethods = ["degem"]', "datasets = [1]: it may be a list"),
        ('datasets = ["cora"]\nmethods = "degem"', "methods = 'degem': it may be a list such as"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nshifts = "label"', "shifts = 'label': it may be a list"),
        (
            'datasets = ["cora"]\nmethods = ["degem"]\nlabel_rates = ["x"]',
            "label_rates = ['x']: it may be a list of sh",
        ),
        ('datasets = ["cora"]\nmethods = ["degem"]\nlabel_rates = [0.0]', "label_rates = [0.0]: it may be"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nlabel_rates = [1.5]', "above 0 and at most 1"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nlabel_rates = [nan]', "label_rates = [nan]: it may be"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nlabel_rates = 0.5', "label_rates = 0.5: it may be a list"),
        ('datasets = ["cora"]\nmethods = ["degem"]\nlabel_rates = []', "label_rates = []: it may be"),
        ('datasets = ["cora"]\nvariants = "degem"', "variants = 'degem': it may be tables headed [[variants]]"),
        ('datasets = ["cora"]\n[[variants]]\nname = "a"\nmethod = "degem"\nset = 3', "set = 3: it may be parameters"),
    ],
)
def test_a_wrong_table_is_refused_with_its_path_and_the_way_out(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(DegemError) as caught:
        read_spec(str(tmp_path / "own.toml"))
    assert str(caught.value).startswith(f"{tmp_path / 'own.toml'}: ")
    assert told in str(caught.value)
