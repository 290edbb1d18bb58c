"""Gives the dashboards the form that Grafana reads, with Grafana's own builders. `make docs` writes the files."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from .panels import BOARDS, OWN, Board, Panel

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
"""Whichever Prometheus is picked above the panels."""

WIDTH, HEIGHT = 12, 9
"""Of a panel, in Grafana's grid of 24 columns."""


def files() -> dict[str, str]:
    """The text of each dashboard, by the name of its file."""
    return {
        f"{board.uid}.json": JSONEncoder(sort_keys=True, indent=2).encode(_board(board)) + "\n"
        for board in BOARDS
    }


def _board(board: Board) -> object:
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.words)
        .tags(["kubernetes", "dra"])
        .editable()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .timezone("browser")
        .refresh("30s")
        .time("now-6h", "now")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_variable("namespace", "dra_operator_build_info"))
        .with_variable(_variable("job", 'dra_operator_build_info{namespace=~"$namespace"}'))
        .with_variable(_variable("driver", f"dra_operator_pools{{{OWN}}}"))
    )
    for number, panel in enumerate(board.panels, start=1):
        made.with_panel(_panel(panel).id(number))
    return made.build()


def _variable(name: str, of: str) -> dashboard.QueryVariable:
    """All values of a label, any number of which may be picked."""
    return (
        dashboard.QueryVariable(name)
        .label(name.capitalize())
        .datasource(SOURCE)
        .query({"query": f"label_values({of}, {name})", "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def _panel(panel: Panel) -> timeseries.Panel:
    green = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps([Threshold(color="green")])
    made = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.words)
        .datasource(SOURCE)
        .unit(panel.unit)
        .min(0)
        .thresholds(green)
        .fill_opacity(10)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
        )
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .span(WIDTH)
        .height(HEIGHT)
    )
    if panel.unit == "percentunit":
        made.max(1)
    for letter, shown in zip("ABCDEFGH", panel.queries, strict=False):
        made.with_target(
            prometheus.Dataquery()
            .expr(shown.expression)
            .legend_format(shown.legend)
            .datasource(SOURCE)
            .range()
            .ref_id(letter)
        )
    return made
