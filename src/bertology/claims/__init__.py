"""Published findings as data, and the judge that says whether they hold for a model."""

from bertology.lazy import make_callable

make_callable(__name__, "bertology.claims.run")
