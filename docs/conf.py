"""The site: ``make docs``. Pages are plain Markdown that also reads well where the repository is kept."""

from __future__ import annotations

import re
from functools import partial, partialmethod
from importlib import import_module, metadata
from pkgutil import iter_modules

from docutils.nodes import SkipNode, math, math_block
from latex2mathml.converter import convert
from nbclient import NotebookClient
from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef
from sphinx.writers.html5 import HTML5Translator
from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from degem.cli import app as cli

project = "degem"
author = "the authors of degem"
release = metadata.version("degem")

extensions = [
    "myst_nb",  # Markdown, and tutorials that are run
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",  # sections Arguments: and Example:
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
smartquotes = False  # -- is an option
exclude_patterns = ["figures", "images", "static"]

html_theme = "furo"
html_title = "degem"
html_show_sphinx = html_show_copyright = False
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["site.css"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

nb_execution_mode = "force"  # always: a tutorial must fail when the code that it shows is broken
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 600  # seconds a cell: the machine may be busy
# %%bash prints pieces of 100 characters: let each stream of a cell be one output.
NotebookClient.__init__ = partialmethod(NotebookClient.__init__, coalesce_streams=True)

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_type_aliases = {  # names of annotated types, which would be written out in full
    **dict.fromkeys(("Positive", "NonNegative", "Fraction", "Dropout"), "float"),
    **dict.fromkeys(("Count", "Width", "Depth", "NonNegativeInt"), "int"),
    "ArrayLike": "ArrayLike",
}
TypeAliasForwardRef.__repr__ = lambda self: self.name  # what a union of such a name shows
autoclass_content = "class"

nitpicky = True
nitpick_ignore_regex = [("py:class", r"(?!degem).*"), ("py:class", r"degem\..*\._\w+")]  # of others, and private ones
copybutton_exclude = ".linenos, .gp, .go"

# Files beside docs/ that pages link to, and the pages that hold them here.
OUTSIDE = {"../README.md": "quickstart.md", "../CHANGELOG.md": "changelog.md", "../SECURITY.md": "security.md"}


def _latex_to_mathml(self: HTML5Translator, node: math | math_block, display: str) -> None:
    """Mathematics as MathML, which browsers show by themselves: nothing is fetched."""
    self.body.append(convert(node.astext(), display=display))
    raise SkipNode


def _append_commands(app: Sphinx, name: str, source: list[str]) -> None:
    """Let the page of commands hold what each ``--help`` says."""
    if name == "commands":
        command = get_command(cli)
        told = get_docs_for_click(obj=command, ctx=Context(command, info_name="degem"), name="degem")
        _, head, commands = re.sub(r"^Example: (.*)", r"Example: `\1`", told, flags=re.MULTILINE).partition("\n\n## ")
        source[0] += head + commands


def _point_inside(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links out of docs/ lead to the pages of the site."""
    for outside, inside in OUTSIDE.items():
        source[0] = source[0].replace(f"]({outside}", f"]({inside}")


def _every_module(app: Sphinx, name: str, source: list[str]) -> None:
    """Let ``.. automodules:: PACKAGE`` stand for an automodule of the package and of each module in it."""

    def directives(found: re.Match[str]) -> str:
        inside = [f"{found[1]}.{module.name}" for module in iter_modules(import_module(found[1]).__path__)]
        return "\n\n".join(f".. automodule:: {path}\n   :members:" for path in [found[1], *inside])

    source[0] = re.sub(r"^\.\. automodules:: (\S+)$", directives, source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _point_inside)
    app.connect("source-read", _append_commands)
    app.connect("source-read", _every_module)
    inline, block = (partial(_latex_to_mathml, display=display) for display in ("inline", "block"))
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
