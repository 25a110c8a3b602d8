"""The steps of pipelines. Each is a struct of its arguments, and a pure function of the data."""

from __future__ import annotations

from typing import Final

from weft.pipelines.steps.base import PipelineStep
from weft.pipelines.steps.dates import ParseDate
from weft.pipelines.steps.filter import TableFilter, TableSelect
from weft.pipelines.steps.group import GroupBy
from weft.pipelines.steps.http import HttpRequestStep
from weft.pipelines.steps.join import TableJoin
from weft.pipelines.steps.jq import JqTransform
from weft.pipelines.steps.order import TableSort, TopK
from weft.pipelines.steps.regex import RegexExtract

STEPS: Final[dict[str, type[PipelineStep]]] = {
    "http_request": HttpRequestStep,
    "table_sort": TableSort,
    "table_filter": TableFilter,
    "table_select": TableSelect,
    "top_k": TopK,
    "groupby": GroupBy,
    "join": TableJoin,
    "jq_transform": JqTransform,
    "regex_extract": RegexExtract,
    "parse_date": ParseDate,
}
"""The steps by the names that documents and models use."""
