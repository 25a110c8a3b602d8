"""Groups: collections of steps and workflows without a store. The modules of a large application define them."""

from __future__ import annotations

from weft.authoring.registrar import Registrar
from weft.authoring.registrations import Registrations


class Group(Registrar):
    """A collection of steps and workflows that an app can include. ``prefix`` is prepended to their names."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__(Registrations(prefix))
