"""One self-contained HTML file from a template and plain data."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs


def fill(template: str, title: str, data: dict[str, Any]) -> str:
    """The page: style, scripts, Plotly and ``data`` put into the template.

    Arguments:
        template: The body, ``report/assets/<template>.html``; its script has the same name and ends in ``.js``.
        title: The page's title.
        data: What the page shows: strings, numbers, lists, dicts and None.
    """
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        body=_asset(f"{template}.html"),
        style=_asset("page.css"),
        plotly=_packed_plotly(),
        data=safe_json(data),
        scripts=_asset("page.js") + _asset(f"{template}.js"),
    )


def safe_json(data: Any) -> str:
    r"""JSON that cannot end the script element it stands in, whatever text it holds.

    Example:
        >>> safe_json("</script>")
        '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


@cache
def _packed_plotly() -> str:
    """Plotly's script, compressed: 2 MB instead of 5; the browser unpacks it."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), compresslevel=6, mtime=0)).decode()


def _asset(name: str) -> str:
    return files("degem.report").joinpath("assets", name).read_text(encoding="utf-8")
