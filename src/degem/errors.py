"""What can go wrong, by kind. Every message names the thing, the place and the way out."""


class DegemError(Exception):
    """The base of every error this library raises on purpose."""


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


class CalibrationWarning(UserWarning):
    """The calibration set cannot support the level asked for."""
