"""A table, and how it is written: terminal, Markdown, LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

PLAIN = 0


@dataclass(frozen=True)
class Grid:
    """A table that knows nothing of its format.

    Arguments:
        title: Its title.
        header: The names of its columns.
        parts: Named groups of lines; a cell is a text and a rank (1 best, 2 second best, 0 neither).
        notes: Lines below it.
    """

    title: str
    header: tuple[str, ...]
    parts: tuple[tuple[str, tuple[tuple[tuple[str, int], ...], ...]], ...]
    notes: tuple[str, ...] = ()

    def _repr_markdown_(self) -> str:
        """How the table shows itself in a notebook."""
        return markdown(self)


def terminal(grid: Grid) -> Group:
    """A table for a rich console: the best bold, the second best underlined."""
    styles = ("", "bold", "underline")
    table = Table(*grid.header, title=Text(grid.title), title_justify="left")
    for part, lines in grid.parts:
        if part and len(grid.parts) > 1:
            table.add_row(Text(part, style="italic"), *[""] * (len(grid.header) - 1))
        for line in lines:
            table.add_row(*(Text(text, style=styles[rank]) for text, rank in line))
        table.add_section()
    return Group(table, *(Text(note, style="dim") for note in grid.notes), Text(""))


def markdown(grid: Grid) -> str:
    """A Markdown table: the best in bold, the second best in italics."""
    marks: tuple[Callable[[str], str], ...] = (str, lambda text: f"**{text}**", lambda text: f"*{text}*")
    lines = [f"**{grid.title}**", "", _bar(grid.header), _bar(["---"] + ["---:"] * (len(grid.header) - 1))]
    for part, group in grid.parts:
        if part and len(grid.parts) > 1:
            lines.append(_bar([f"*{part}*", *[""] * (len(grid.header) - 1)]))
        lines += [_bar([marks[rank](text) if text else "" for text, rank in line]) for line in group]
    return "\n".join([*lines, "", *(f"- {note}" for note in grid.notes), ""])


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def latex(grid: Grid) -> str:
    """A LaTeX table (booktabs): the best in bold, the second best underlined."""
    marks: tuple[Callable[[str], str], ...] = (
        str,
        lambda text: f"\\textbf{{{text}}}",
        lambda text: f"\\underline{{{text}}}",
    )
    width = len(grid.header)
    lines = [
        "\\begin{table}",
        f"\\caption{{{_escaped(grid.title)}. {_escaped(' '.join(grid.notes))}}}",
        f"\\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        "\\toprule",
        " & ".join(_escaped(name) for name in grid.header) + " \\\\",
    ]
    for part, group in grid.parts:
        lines.append("\\midrule")
        if part and len(grid.parts) > 1:
            lines.append(f"\\multicolumn{{{width}}}{{l}}{{\\textit{{{_escaped(part)}}}}} \\\\")
        lines += [
            " & ".join(marks[rank](_escaped(text)) if text else "" for text, rank in line) + " \\\\" for line in group
        ]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""])


_LATEX = {
    "\\": "\\textbackslash{}",
    "±": "$\\pm$",
    "Δ": "$\\Delta$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "−": "$-$",
    "–": "--",
    "%": "\\%",
    "_": "\\_",
    "&": "\\&",
    "#": "\\#",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "{": "\\{",
    "}": "\\}",
    "$": "\\$",
}


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
