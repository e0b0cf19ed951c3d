"""How plans, batches and loaders look in notebooks: as tables."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock._penstock import Dataset


def plan_html(plan: Dataset) -> str:
    """A line for each operation, and what a sample is."""
    lines = html.escape(plan.describe()).replace(").", ")<br>&nbsp;&nbsp;.")
    size = "a stream" if plan.is_stream else "endless" if plan.size is None else f"{plan.size:,}"
    unit = "global batches" if plan.batch_size else "samples"
    fields = _table(("field", "dtype", "shape"), [(field.name, field.dtype, field.shape) for field in plan.fields])
    return f"<code>{lines}</code><p>{size}{'' if plan.is_stream else ' ' + unit}</p>{fields}"


def batch_html(batch: Any) -> str:
    """Of a DeviceBatch or a Step."""
    parts = getattr(batch, "parts", [batch])
    rows = [(name, tensor.dtype, tensor.shape, part.device) for part in parts for name, tensor in part.items()]
    return _table(("field", "dtype", "shape", "device"), rows)


def stats_html(stats: Any) -> str:
    """Where the time went, by stage."""
    rows = [(name, f"{time.wait_s:.2f}", f"{time.busy_s:.2f}") for name, time in stats.stages.items()]
    return f"<code>{html.escape(repr(stats))}</code>{_table(('stage', 'waited, s', 'busy, s'), rows)}"


def loader_html(loader: Any) -> str:
    """What it delivers, and how fast."""
    return f"<code>{html.escape(repr(loader))}</code>{stats_html(loader.stats())}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line(heads, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
