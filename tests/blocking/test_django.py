"""A minimal Django application under a real threaded server, in a process of its own: Django has global settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SITE = """
import json, threading, urllib.request
from concurrent.futures import ThreadPoolExecutor
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path
from werkzeug.serving import make_server
from tests.blocking.shop import make_shop

settings.configure(SECRET_KEY="x", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], USE_TZ=True)
app = make_shop()


def order(request: HttpRequest, id: str) -> JsonResponse:
    if request.method == "POST":
        return JsonResponse({"id": app.sync.start("order", {"item": id}, id=id).id}, status=202)
    return JsonResponse({"result": app.sync.get(id).result(timeout="1m")})


urlpatterns = [path("orders/<str:id>", order)]

if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, get_wsgi_application(), threaded=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()

    def one(number: int) -> str:
        url = f"http://127.0.0.1:{server.server_port}/orders/o-{number}"
        urllib.request.urlopen(urllib.request.Request(url, method="POST")).close()
        with urllib.request.urlopen(url) as answer:
            return json.load(answer)["result"]

    with ThreadPoolExecutor(8) as pool:
        print(list(pool.map(one, range(3))))
    server.shutdown()
    serving.join()
    server.server_close()
"""


def test_views_start_runs_and_wait_for_them(tmp_path: Path) -> None:
    (tmp_path / "site_of_shop.py").write_text(SITE)
    ran = subprocess.run(
        [sys.executable, "site_of_shop.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "WEFT_URL": "sqlite:///weft.db", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.stdout == "['box of o-0', 'box of o-1', 'box of o-2']\n", ran.stderr
    assert ran.returncode == 0
