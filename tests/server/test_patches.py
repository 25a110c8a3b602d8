"""Patches of runs, over HTTP."""

from tests.server.kit import API, Server, covers


@covers("patchRun", "undoPatch", "getRunVersions")
def test_a_schedule_is_not_patched(server: Server) -> None:
    new = {"name": "yearly", "workflow": "hello", "input": {"name": "a"}, "cron": "0 0 1 1 *"}
    assert server.post(f"{API}/schedules", new).status == 200
    path = f"{API}/runs/schedule%2Fyearly"

    assert server.post(f"{path}/patch", {"patch": {"ops": []}}).status == 409
    assert server.post(f"{path}/patch/undo", {}).code == "patch.nothing_to_undo"
    assert [one["rev"] for one in server.get(f"{path}/versions").json["versions"]] == [0]


def test_a_run_that_does_not_exist(server: Server) -> None:
    assert server.post(f"{API}/runs/nobody/patch", {"patch": {"ops": []}}).code == "run.not_found"
    assert server.post(f"{API}/runs/nobody/patch/undo", {}).code == "run.not_found"
    assert server.get(f"{API}/runs/nobody/versions").code == "run.not_found"
