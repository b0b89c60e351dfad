"""What can go wrong, by kind. Every message names the thing, the place and the way out."""

QUOTED = 80  # characters of a value that a message shows
LONGEST = 1000  # characters of a message


def quoted(value: object) -> str:
    r"""A value as a message shows it: control characters escaped, at most 80 characters.

    Example:
        >>> print(quoted("red\x1b[31m"), len(quoted("x" * 300_000)))
        'red\x1b[31m' 80
    """
    if isinstance(value, str | bytes):
        value = value[:QUOTED]
    text = repr(value)
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def one_line(text: object) -> str:
    r"""Text for a terminal: one line, no control characters, not endless.

    Example:
        >>> one_line("two\nlines and \x1b[2J")
        'two lines and \\x1b[2J'
    """
    words = " ".join(str(text)[: 2 * LONGEST].split())
    plain = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in words)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"


class DegemError(Exception):
    """The base of every error this library raises on purpose; its message is one line without control characters."""

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))


class GraphError(DegemError, ValueError):
    """A graph, or a file that should hold one, is not what it should be."""


class ParameterError(DegemError, ValueError):
    """A parameter has the wrong name, type or range."""


class NotFittedError(DegemError, AttributeError):
    """A detector was asked for something it learns in ``fit`` before ``fit`` was called."""


class ModelFileError(DegemError, ValueError):
    """A model folder is missing, truncated, altered, foreign or newer than this library."""


class DataNotFoundError(DegemError, FileNotFoundError):
    """A dataset's raw file is not on this machine."""


class GraphNotice(UserWarning):
    """Something about a graph was tidied while it was read."""


class ScoreWarning(UserWarning):
    """Scores were given that tell nothing."""


class CalibrationWarning(UserWarning):
    """The calibration set cannot support the level asked for."""
