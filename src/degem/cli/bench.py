"""``degem bench``: run the paper's tables, show them, draw them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from degem.cli import options
from degem.cli.common import check_folder
from degem.cli.messages import LOGGER, tell
from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem.bench.comparison import Comparison
    from degem.bench.formats import Grid
    from degem.bench.summary import Results

app = typer.Typer(no_args_is_help=True, help="Run the paper's tables, and see ours beside the published figures.")


Format = Literal["terminal", "markdown", "csv", "latex"]
ResultsFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that degem bench run wrote.")]


@app.command("run")
def run_command(
    table: Annotated[
        str,
        typer.Argument(
            help="arrival, main, strict, label-rate, ablation, gcl, homophily, time, gnnsafe-settings, all, "
            "or a TOML file."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the results; what is there already is not run again.")],
    methods: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Only these datasets.")] = None,
    shifts: Annotated[str | None, typer.Option(help="Only these shifts.")] = None,
    seeds: Annotated[str | None, typer.Option(help="5 means seeds 0 to 4; 11,12 means those two.")] = None,
    protocol: Annotated[
        Literal["arrival", "strict", "oracle"] | None,
        typer.Option(help="How detectors are fitted and judged.", show_default="the table's own"),
    ] = None,
    data_dir: options.DataDir = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one a core")] = None,
    engine: options.Engine = "local",
    address: options.Address = None,
    mkdir: options.Mkdir = False,
) -> None:
    """Run a table; each result is appended to DIR/results.csv as it finishes. Exits with 1 if a row failed.

    Example: degem bench run main --methods degem,msp --datasets cora --seeds 3 --out results
    """
    from degem.bench.processes import fork_server, shares
    from degem.detectors.registry import METHODS

    check_folder(out, mkdir)
    named = set(options.listed(methods) or METHODS)
    fork_server(shares(workers)[1], named if named <= METHODS.keys() else METHODS)  # loads its libraries while we do
    from degem.bench import runner, specs
    from degem.bench.store import made_folder
    from degem.cli.bench_progress import listening
    from degem.data.datasets import what_to_put_where

    names = specs.spec_names() if table == "all" else [table]
    chosen = [
        specs.narrowed(
            specs.read_spec(name),
            methods=options.listed(methods),
            datasets=options.listed(datasets),
            shifts=options.listed(shifts),
            seeds=specs.parse_seeds(seeds) if seeds is not None else None,
        )
        for name in names
    ]
    tasks = specs.tasks_of(chosen, protocol)
    absent = runner.absent_datasets(dict.fromkeys(task.dataset for task in tasks), data_dir)
    if datasets is None:  # asked for by name, an absent dataset is downloaded or an error
        for dataset, paths in absent.items():
            LOGGER.warning("%s is not on this machine and left out: %s", dataset, what_to_put_where(paths))
        tasks = [task for task in tasks if task.dataset not in absent]
    if table not in (*specs.spec_names(), "all"):
        made_folder(out)
        if Path(table).resolve().parent != out.resolve():
            shutil.copyfile(table, out / Path(table).name)  # degem bench show finds it there
    with listening() as listener:
        if engine == "ray":
            from degem.engine.bench import run

            status = run(tasks, out, address=address or "local", data_dir=data_dir, listener=listener)
        else:
            status = runner.run(tasks, out, data_dir=data_dir, workers=workers, listener=listener)
    failures = sum(bool(row.error) for row in status.rows)
    tell(f"{len(status.rows)} rows added to {out}, {failures} of them failed; {status.skipped} were there already")
    if failures:
        raise typer.Exit(1)


@app.command()
def ceiling(
    out: Annotated[Path, typer.Option(help="Folder of the results; what is there already is not run again.")],
    datasets: Annotated[str | None, typer.Option(help="Only these datasets.")] = None,
    seeds: Annotated[str, typer.Option(help="5 means seeds 0 to 4; 11,12 means those two.")] = "5",
    data_dir: options.DataDir = None,
    mkdir: options.Mkdir = False,
) -> None:
    """Add the upper mark of arrival: boosted trees trained with OOD examples of the same kind. No detector.

    Example: degem bench ceiling --datasets cora --seeds 2 --out results
    """
    from degem.bench import specs
    from degem.bench.ceiling import ceiling_row
    from degem.bench.store import Store
    from degem.bench.summary import CEILING
    from degem.shifts import Settings, load_arrival
    from degem.shifts.arrival_scenarios import arrivals_of
    from degem.shifts.scenarios import kind_of

    check_folder(out, mkdir)
    spec = specs.narrowed(specs.read_spec("arrival"), datasets=options.listed(datasets))
    store = Store(out)
    store.prepare()
    done = {(row.dataset, row.shift, row.seed) for row in store.rows() if row.method == CEILING.method}
    for dataset in spec.datasets:
        for seed in specs.parse_seeds(seeds):
            for shift in arrivals_of(dataset):
                if (dataset, shift, seed) in done:
                    continue
                arrival = load_arrival(dataset, kind_of(shift), Settings(seed=seed), data_dir)
                row = ceiling_row(arrival.grown[shift], dataset, shift, seed)
                store.append([row])
                tell(f"{dataset} {shift} seed {seed}: AUROC {row.auroc:.2f}")


@app.command()
def show(
    results: ResultsFolder,
    form: Annotated[Format, typer.Option("--format", help="How to write the tables.")] = "terminal",
    metric: Annotated[Literal["auroc", "aupr", "fpr95", "acc"], typer.Option(help="Which figure to show.")] = "auroc",
    compare: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Two methods, by a paired test.")
    ] = None,
) -> None:
    """Show the tables: ours (mean ± std over seeds, 95 % interval) beside the published figure.

    Example: degem bench show results --format markdown
    """
    from degem.bench import tables
    from degem.bench.summary import tables_in

    found = tables_in(results)
    if compare is not None:
        pairs = _compared(found, results, compare, metric)
        if form == "csv":
            typer.echo(tables.comparison_csv(pairs, *compare, metric), nl=False)
        else:
            _print((tables.comparison_grid(here, *compare, name, metric) for name, here in pairs.items()), form)
    elif form == "csv":
        typer.echo(tables.CSV_HEADER)
        for spec, protocol in found.tables:
            typer.echo(tables.csv_text(spec, found.rows, protocol), nl=False)
    else:
        narrow = form == "terminal"
        for spec, protocol in found.tables:
            _print(tables.grids(spec, found.rows, protocol, metric, by_shift=narrow), form)


def _compared(found: Results, folder: Path, methods: tuple[str, str], metric: str) -> dict[str, list[Comparison]]:
    """Two methods by protocol, of those protocols under which both ran."""
    from degem.bench.comparison import compare

    pairs = {protocol: compare(found.rows, protocol, *methods, metric) for protocol in found.protocols}
    pairs = {protocol: here for protocol, here in pairs.items() if here}
    if not pairs:
        known = ", ".join(sorted({row.method for row in found.rows}))
        raise ParameterError(
            f"--compare {' '.join(methods)}: {folder} has no place where both ran at their defaults; "
            f"it has rows of {known}"
        )
    return pairs


def _print(grids: Iterable[Grid], form: Format) -> None:
    from rich.console import Console

    from degem.bench import formats

    for grid in grids:
        if form == "terminal":
            Console().print(formats.terminal(grid))
        else:
            typer.echo(formats.markdown(grid) if form == "markdown" else formats.latex(grid))


@app.command()
def figure(
    results: ResultsFolder,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")],
    mkdir: options.Mkdir = False,
) -> None:
    """Draw the paper's figures from our rows, as PNG and SVG.

    Example: degem bench figure results --out figures
    """
    from degem.bench.summary import tables_in
    from degem.extras import needs_extra

    check_folder(out, mkdir)
    with needs_extra("bench", "degem bench figure"):
        from degem.bench.figures import draw_all

    for path in draw_all(tables_in(results), out):
        typer.echo(str(path))


@app.command()
def docs(
    results: ResultsFolder,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results.md"),
    mkdir: options.Mkdir = False,
) -> None:
    """Write the pages of results: every table, what reproduces, what does not, and why; and arrival.md beside it.

    Pictures that degem bench figure wrote into a folder "figures" beside the page are shown on it.

    Example: degem bench docs benchmarks/results/bench --out docs/results.md
    """
    from degem.bench.page import arrival_page, results_page
    from degem.bench.summary import tables_in
    from degem.files import write_text

    check_folder(out, mkdir)
    pictures = sorted(path.relative_to(out.parent).as_posix() for path in (out.parent / "figures").glob("*.png"))
    found = tables_in(results)
    write_text(out, results_page(found, pictures))
    write_text(out.parent / "arrival.md", arrival_page(found))
    typer.echo(f"{out}, {out.parent / 'arrival.md'}")
