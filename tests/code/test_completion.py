"""An app offers only its documented names for completion."""

import weft


def test_only_documented_names_are_offered() -> None:
    app = weft.App("memory://")

    offered = {name for name in dir(app) if not name.startswith("_")}

    documented = (
        "bulk check_live diff export get goal graph import_ include lifespan list move plan router run schedule "
        "schedules start step steps url workflow workflows"
    )
    assert offered == set(documented.split())
    assert all(hasattr(app, name) for name in offered - {"router"})
