"""Bundles over HTTP."""

from pathlib import Path

import weft
from tests.bundles.kit import go, recorded, unzipped
from tests.bundles.kit import shop as bundled_shop
from tests.server.kit import API, covers, serving
from tests.server.shop import shop

ZIP = "application/zip"


@covers("exportRun", "importBundle")
def test_a_server_gives_and_takes_bundles() -> None:
    data = go(recorded(bundled_shop()))
    with serving(shop()) as server:
        taken = server.ask("POST", f"{API}/bundles", raw=data, content_type=ZIP)
        assert (taken.status, taken.json["runs"][0]["id"]) == (200, "o-1")
        shown = server.get(f"{API}/runs/o-1").json
        assert (shown["status"], shown["output"]) == ("imported", 50006)
        given = server.get(f"{API}/bundles/o-1?tree=true")
        assert given.status == 200
        assert unzipped(given.raw)["manifest.json"]
        broken = server.ask("POST", f"{API}/bundles", raw=data[:-9], content_type=ZIP)
        assert broken.code == "bundle.corrupt"
        assert server.get(f"{API}/bundles/nobody").status == 404
        assert server.ask("POST", f"{API}/bundles", raw=data, content_type="text/plain").status == 415
        assert server.post(f"{API}/runs/o-1/cancel", {}).code == "run.imported"


@covers("moveRun")
def test_a_run_goes_from_one_server_to_another(tmp_path: Path) -> None:
    with serving(shop()) as home, serving(shop()) as there:
        home.until(home.start("ship", "a-1", order_id="o"), "ask_opened")

        async def scenario() -> None:
            async with weft.Client(home.url) as client:
                await client.move("a-1", tmp_path / "a.zip", to="the other server", reason="nearer")
            async with weft.Client(there.url) as client:
                done = await client.import_(tmp_path / "a.zip", adopt=True)
                assert [(one.id, one.status, one.created) for one in done.runs] == [("a-1", "running", True)]

        go(scenario())
        refused = home.post(f"{API}/runs/a-1/messages", {"name": "x"})
        assert (refused.status, refused.code, "the other server" in refused.json["detail"]) == (409, "run.moved", True)
        assert home.get(f"{API}/runs/a-1").json["status"] == "moved"
        again = home.post(f"{API}/bundles/a-1", {})
        assert (again.status, again.raw == (tmp_path / "a.zip").read_bytes()) == (200, True)
        taken = home.ask("POST", f"{API}/bundles?adopt=true", raw=again.raw, content_type=ZIP)
        assert taken.code == "run.moved"


def test_a_client_of_a_server_writes_and_reads_files(tmp_path: Path) -> None:
    (tmp_path / "o.zip").write_bytes(go(recorded(bundled_shop())))
    with serving(shop()) as server:

        async def scenario() -> None:
            async with weft.Client(server.url) as client:
                done = await client.import_(tmp_path / "o.zip")
                assert done.runs[0].id == "o-1"
                await client.export("o-1", tmp_path / "again.zip", tree=True)

        go(scenario())
    assert unzipped((tmp_path / "again.zip").read_bytes())["manifest.json"]
