"""An app offers only its documented names for completion."""

import weft


def test_only_documented_names_are_offered() -> None:
    app = weft.App("memory://")

    offered = {name for name in dir(app) if not name.startswith("_")}

    documented = (
        "agent bulk check_live diff export get goal graph import_ include lifespan list model move on pipeline plan "
        "resource router run schedule schedules start sync step steps url workflow workflows"
    )
    assert offered == set(documented.split())
    assert all(hasattr(app, name) for name in offered - {"router"})
