"""The command ``degem``: one file a command, thin: parse, call the library, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from degem.cli.messages import LOGGER, be_quiet, messages
from degem.errors import DegemError

WRONG_USE = typer.BadParameter.__bases__[0]  # of the words on the command line: typer has no name of its own for it

ANYWHERE = ("--debug", "--quiet")  # where other options stand before or behind the command, these may do both

# Each is a function of its own name in a module of that name; bench has commands below it.
COMMANDS = (
    *("demo", "fit", "score", "trust", "calibrate", "update", "serve", "evaluate"),
    *("report", "explain", "compare", "info", "methods", "datasets", "bench"),
)


class Commands(TyperGroup):
    """The commands, each imported when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS, TyperCommand(None))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"degem.cli.{cmd_name}")
        part = typer.Typer(add_completion=False)
        if cmd_name == "bench":
            part.add_typer(module.app, name=cmd_name)
            return typer.main.get_group(part).get_command(ctx, cmd_name)
        part.command(cmd_name)(getattr(module, cmd_name))
        return typer.main.get_command(part)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"degem {version_of('degem')}")
        raise typer.Exit


@app.callback()
def degem(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but results and errors; anywhere.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; anywhere.")] = False,
) -> None:
    """Know which nodes your graph model should not be trusted on.

    Fit a detector on a graph, score any graph with the same features, and get a calibrated answer for every node.
    """
    if quiet:
        be_quiet()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 2 a mistake that can be put right, 1 anything else, 130 after Ctrl-C."""
    words = sorted(sys.argv[1:] if arguments is None else arguments, key=lambda word: word not in ANYWHERE)
    with messages():
        try:
            sys.exit(app(args=words, prog_name="degem", standalone_mode=False))
        except Exception as error:
            if "--debug" in words and not isinstance(error, WRONG_USE):
                raise
            message, code = _explained(error)
            if message:  # without a command the help was printed
                LOGGER.error("%s", message)
            sys.exit(code)


def _explained(error: Exception) -> tuple[str, int]:
    """What to tell of an error, and the exit code."""
    if isinstance(error, DegemError):
        return str(error), 2
    if isinstance(error, WRONG_USE):
        return _wrong_use(error), 2
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", 2
    if isinstance(error, MemoryError):
        return f"out of memory: {error}", 1
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)", 1


def _wrong_use(error: Any) -> str:
    """What was wrong with the words, and where the right ones stand; nothing where there were none."""
    said: str = error.format_message()
    return f"{said.removesuffix('.')}: see {error.ctx.command_path} --help" if said and error.ctx else said
