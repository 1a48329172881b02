"""The options that analyses of what a model needs share: what each does, said once."""

from __future__ import annotations

from typing import Annotated, Literal

Task = Annotated[
    Literal["auto", "mlm", "sentence", "pair", "token", "qa", "choice"],
    "what the model is asked; auto: what its head is for, else hidden pieces (`mlm`)",
]
TagLayer = Annotated[str, "for the task token: the layer of tags; left out, the first that is there"]
Scale = Annotated[
    Literal["layer", "none"],
    "`layer`: gradients of each layer's heads scaled to a length of 1, as the paper has it; `none`: nats",
]
Legacy = Annotated[bool, "gradients without their sign at each piece, as the released code has it"]
