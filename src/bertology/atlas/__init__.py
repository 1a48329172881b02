"""The atlas: the same findings judged for many models, and what differs between them."""

from bertology.lazy import make_callable

make_callable(__name__, "bertology.atlas.build")
