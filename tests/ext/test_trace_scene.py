"""One run tree over HTTP, Postgres, two hosts and an HTTP step is one trace."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests import servers
from tests.ext.otel_kit import attributes, collecting
from tests.ext.trace_picture import draw, spans_by_service
from tests.ext.trace_scene import CALLER, played
from weft.core.trace_context import parse_traceparent


@pytest.mark.proof
def test_a_tree_over_http_two_hosts_and_an_http_step_is_one_trace(tmp_path: Path) -> None:
    url = servers.database("traced")
    servers.empty(url)
    caller = parse_traceparent(CALLER)
    assert caller is not None
    with collecting() as collector, played(tmp_path, url, collector) as scene:
        found = spans_by_service(collector)

    spans = [span for span, _ in found]
    by_name = {span.name: (span, service) for span, service in found if span.name not in ("commit", "charge", "pack")}
    assert by_name["order"][0].parent_span_id.hex() == f"{caller.span_id:016x}"
    # The second host performs the task that the first one offered.
    offered, work = sorted((one for one in found if one[0].name == "pack"), key=lambda one: one[1])
    assert (offered[1], work[1]) == ("shop-api", "shop-packing")
    assert work[0].parent_span_id == offered[0].span_id
    assert offered[0].start_time_unix_nano <= work[0].end_time_unix_nano
    # The HTTP step passes its own span on.
    (_, headers) = scene.sent_to_rates
    sent = parse_traceparent(headers["traceparent"])
    assert sent is not None
    (fetch,) = [span for span in spans if span.span_id.hex() == f"{sent.span_id:016x}"]
    assert attributes(fetch)["weft.place"].startswith("fetch/")
    assert fetch.parent_span_id == by_name["rates"][0].span_id
    # What the step on the second host printed belongs to it.
    (_, record) = collector.log_records()
    assert record.span_id == work[0].span_id
    assert len({span.span_id for span in spans}) == len(spans)
    ET.fromstring(draw(found))
