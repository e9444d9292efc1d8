"""Prints the Grafana dashboard of hlorank: `python3 dashboard.py >hlorank.json`."""

import json
from dataclasses import dataclass, field

# Limits every query to the servers chosen at the top of the dashboard.
SERVERS = 'job="hlorank", instance=~"$instance"'
# Limits a query to the chosen servers and models.
MODELS = f'{SERVERS}, model=~"$model"'
# Grafana divides the width of a dashboard into 24 columns.
COLUMNS = 24
PANEL_WIDTH = 8
PANEL_HEIGHT = 8

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    """Lines over time. `unit` is a unit of Grafana: s, bytes, reqps, ops, percentunit, short."""

    title: str
    unit: str
    # PromQL expressions by the legend of their lines.
    queries: dict[str, str]
    stacked: bool = False
    # The lower end of the axis.
    minimum: int = 0


@dataclass(frozen=True)
class Row:
    """A titled group of panels."""

    title: str
    panels: list[Panel] = field(default_factory=list)


def rate(metric: str, labels: str) -> str:
    """Returns the rate of a counter per second."""
    return f"rate({metric}{{{labels}}}[$__rate_interval])"


def total(metric: str, labels: str, by: str = "") -> str:
    """Returns the rate summed over all series, or over those with equal labels `by`."""
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} ({rate(metric, labels)})"


def quantile(part: float, metric: str, labels: str, by: str) -> str:
    """Returns a quantile of a histogram of durations."""
    return f"histogram_quantile({part}, {total(f'{metric}_bucket', labels, f'{by}, le')})"


def ratio(part: str, whole: str) -> str:
    """Returns the ratio of two rates, without a value if the second is zero."""
    return f"{part} / ({whole} > 0)"


def hits(metric: str, labels: str = SERVERS, by: str = "") -> str:
    """Returns the hit ratio of a cache."""
    return ratio(total(metric, f'{labels}, result="hit"', by), total(metric, labels, by))


def calls() -> Row:
    """Calls as clients see them."""
    requests, seconds = "hlorank_requests_total", "hlorank_request_duration_seconds"
    durations = {
        f"{{{{method}}}} p{100 * part:.0f}": quantile(part, seconds, MODELS, "method")
        for part in (0.5, 0.99)
    }
    return Row(
        "Calls",
        [
            Panel(
                "Calls by method",
                "reqps",
                {
                    "{{method}}": total(requests, MODELS, "method"),
                },
            ),
            Panel(
                "Calls by status",
                "reqps",
                {
                    "{{code}}": total(requests, MODELS, "code"),
                },
            ),
            Panel("Duration", "s", durations),
            Panel(
                "Errors by reason",
                "reqps",
                {
                    "{{reason}}": total("hlorank_errors_total", SERVERS, "reason"),
                },
            ),
            Panel(
                "Slow and failed calls",
                "percentunit",
                {
                    "slower than 250 ms, 5 minutes": "job:hlorank_slow_requests:ratio_rate5m",
                    "slower than 250 ms, 1 hour": "job:hlorank_slow_requests:ratio_rate1h",
                    "failed, 5 minutes": "job:hlorank_failed_requests:ratio_rate5m",
                },
            ),
            Panel(
                "Requests in flight",
                "short",
                {
                    "{{instance}}": f"hlorank_requests_in_progress{{{SERVERS}}}",
                    "{{instance}} maximum": f"hlorank_max_requests{{{SERVERS}}}",
                },
            ),
        ],
    )


def stages() -> Row:
    """Time per stage on the server."""
    seconds = "hlorank_stage_duration_seconds"
    # The total is the sum of the other stages.
    parts = f'{SERVERS}, stage!="total"'
    return Row(
        "Stages",
        [
            Panel(
                "Median by stage",
                "s",
                {
                    "{{stage}}": quantile(0.5, seconds, SERVERS, "stage"),
                },
            ),
            Panel(
                "99th percentile by stage",
                "s",
                {
                    "{{stage}}": quantile(0.99, seconds, SERVERS, "stage"),
                },
            ),
            Panel(
                "Time spent, in seconds per second",
                "short",
                {
                    "{{stage}}": total(f"{seconds}_sum", parts, "stage"),
                },
                stacked=True,
            ),
        ],
    )


def reuse() -> Row:
    """Configurations scored, and rows evaluated for them."""
    configs, rows = "hlorank_configs_total", "hlorank_segment_rows_total"
    evaluated, cached = "hlorank_rows_evaluated_total", "hlorank_rows_cached_total"
    distinct = "hlorank_distinct_configs_total"
    return Row(
        "Throughput and reuse",
        [
            Panel(
                "Configurations by model",
                "ops",
                {
                    "{{model}}": total(configs, MODELS, "model"),
                },
            ),
            Panel(
                "Rows",
                "ops",
                {
                    "before sharing": total(rows, MODELS),
                    "evaluated": total(evaluated, MODELS),
                    "distinct, evaluated for other calls": total(cached, MODELS),
                },
            ),
            Panel(
                "Reuse",
                "percentunit",
                {
                    "rows not evaluated": "1 - "
                    + ratio(total(evaluated, MODELS), total(rows, MODELS)),
                    "configurations equal to another of their batch": "1 - "
                    + ratio(total(distinct, MODELS), total(configs, MODELS)),
                },
            ),
        ],
    )


def caches() -> Row:
    """Hits, sizes and evictions of the caches."""
    return Row(
        "Caches",
        [
            Panel(
                "Hit ratio",
                "percentunit",
                {"{{cache}}": hits("hlorank_cache_requests_total", by="cache")},
            ),
            Panel(
                "Bytes",
                "bytes",
                {
                    "{{instance}} {{cache}}": f"hlorank_cache_bytes{{{SERVERS}}}",
                    "{{instance}} {{cache}} maximum": f"hlorank_cache_max_bytes{{{SERVERS}}}",
                },
            ),
            Panel(
                "Evictions",
                "ops",
                {"{{cache}}": total("hlorank_cache_evictions_total", SERVERS, "cache")},
            ),
        ],
    )


def models() -> Row:
    """Calls and versions per model."""
    return Row(
        "Models",
        [
            Panel(
                "Calls by model",
                "reqps",
                {
                    "{{model}}": total("hlorank_requests_total", MODELS, "model"),
                },
            ),
            Panel(
                "99th percentile by model",
                "s",
                {
                    "{{model}} {{method}}": quantile(
                        0.99, "hlorank_request_duration_seconds", MODELS, "model, method"
                    ),
                },
            ),
            Panel(
                "Failed calls by model",
                "reqps",
                {
                    "{{model}} {{code}}": total(
                        "hlorank_requests_total", f'{MODELS}, code!="OK"', "model, code"
                    ),
                },
            ),
            Panel(
                "Versions loaded and rejected",
                "short",
                {
                    "{{model}} {{result}}": (
                        f"sum by (model, result) (hlorank_model_loads_total{{{MODELS}}})"
                    ),
                },
            ),
            Panel(
                "Serving version",
                "short",
                {
                    "{{instance}} {{model}}": f"hlorank_model_stable_version{{{MODELS}}}",
                    "{{instance}} {{model}}, canary": f"hlorank_model_canary_version{{{MODELS}}}",
                },
            ),
            Panel(
                "Versions by state",
                "short",
                {
                    "{{model}} {{state}}": (
                        f"sum by (model, state) (hlorank_model_versions{{{MODELS}}})"
                    ),
                },
            ),
        ],
    )


def quality() -> Row:
    """How well versions rank what clients measured."""
    graphs = f"hlorank_quality_graphs{{{MODELS}}}"

    def of_versions(metric: str) -> dict[str, str]:
        value = f"hlorank_quality_{metric}{{{MODELS}}}"
        # Every graph of every server counts once.
        by = "sum by (model, role, target)"
        mean = f"{by} ({value} * {graphs}) / ({by} ({graphs}) > 0)"
        return {
            "{{model}} {{role}} on {{target}}": mean,
        }

    return Row(
        "Quality on reported measurements",
        [
            Panel("Kendall's tau", "short", of_versions("kendall_tau"), minimum=-1),
            Panel("Pairs in the right order", "percentunit", of_versions("ordered_pairs_ratio")),
            Panel("Slowdown of the top pick", "percentunit", of_versions("top_pick_regret_ratio")),
            Panel(
                "Predicted over measured time",
                "short",
                {
                    "{{instance}} {{model}} {{role}} on {{target}}": (
                        f"hlorank_quality_predicted_time_ratio{{{MODELS}}}"
                    ),
                    "{{instance}} {{model}} {{role}} on {{target}}, larger over smaller": (
                        f"hlorank_quality_time_error_ratio{{{MODELS}}}"
                    ),
                },
            ),
            Panel(
                "Measured graphs and configurations",
                "short",
                {
                    "{{instance}} {{model}} {{role}} on {{target}}": graphs,
                    "{{instance}} {{model}} {{role}} on {{target}}, configurations": (
                        f"hlorank_quality_configs{{{MODELS}}}"
                    ),
                },
            ),
            Panel(
                "Replays",
                "ops",
                {
                    "{{result}}": total("hlorank_quality_replays_total", SERVERS, "result"),
                    "seconds per second": total(
                        "hlorank_quality_replay_duration_seconds_sum", SERVERS
                    ),
                },
            ),
        ],
    )


def process() -> Row:
    """Queued work, and resources of the process."""
    return Row(
        "Queue and process",
        [
            Panel(
                "Queued",
                "short",
                {
                    "{{instance}} tasks": f"hlorank_compute_queue_tasks{{{SERVERS}}}",
                    "{{instance}} rows": f"hlorank_waiting_rows{{{SERVERS}}}",
                },
            ),
            Panel(
                "CPU, in cores",
                "short",
                {
                    "{{instance}}": rate("process_cpu_seconds_total", SERVERS),
                    "{{instance}} compute threads": f"hlorank_compute_threads{{{SERVERS}}}",
                },
            ),
            Panel(
                "Memory",
                "bytes",
                {
                    "{{instance}}": f"process_resident_memory_bytes{{{SERVERS}}}",
                },
            ),
            Panel(
                "Versions",
                "short",
                {
                    "{{version}}": f"sum by (version) (hlorank_build_info{{{SERVERS}}})",
                },
            ),
            Panel(
                "Open files",
                "short",
                {
                    "{{instance}}": f"process_open_fds{{{SERVERS}}}",
                    "{{instance}} maximum": f"process_max_fds{{{SERVERS}}}",
                },
            ),
            Panel(
                "Threads",
                "short",
                {
                    "{{instance}}": f"process_threads{{{SERVERS}}}",
                },
            ),
        ],
    )


def panel_json(panel: Panel, number: int, left: int, top: int) -> dict:
    """Returns a panel in Grafana's format."""
    targets = [
        {"refId": chr(ord("A") + place), "expr": expression, "legendFormat": legend}
        for place, (legend, expression) in enumerate(panel.queries.items())
    ]
    custom = {"fillOpacity": 20 if panel.stacked else 0, "showPoints": "never"}
    if panel.stacked:
        custom["stacking"] = {"mode": "normal"}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "datasource": DATASOURCE,
        "gridPos": {"x": left, "y": top, "w": PANEL_WIDTH, "h": PANEL_HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": panel.minimum, "custom": custom},
            "overrides": [],
        },
        "options": {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list"}},
        "targets": targets,
    }


def panels_json(rows: list[Row]) -> list[dict]:
    """Returns every row and panel, from left to right and top to bottom."""
    panels: list[dict] = []
    top = 0
    for row in rows:
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        heading = {"id": len(panels) + 1, "type": "row", "title": row.title}
        panels.append(heading | {"gridPos": place, "panels": []})
        top += 1
        for place, panel in enumerate(row.panels):
            line, column = divmod(place, COLUMNS // PANEL_WIDTH)
            left, below = column * PANEL_WIDTH, top + line * PANEL_HEIGHT
            panels.append(panel_json(panel, len(panels) + 1, left, below))
        top += -(-len(row.panels) * PANEL_WIDTH // COLUMNS) * PANEL_HEIGHT
    return panels


def variable(name: str, label: str, metric: str) -> dict:
    """Returns a selector of label values, all of which are selected at first."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": f"label_values({metric}, {name})",
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }


def dashboard() -> dict:
    """Returns the dashboard in Grafana's format."""
    datasource = {"name": "datasource", "label": "Prometheus", "type": "datasource"}
    datasource["query"] = "prometheus"
    servers = variable("instance", "Server", 'hlorank_build_info{job="hlorank"}')
    chosen_models = variable("model", "Model", 'hlorank_requests_total{job="hlorank"}')
    rows = [calls(), stages(), reuse(), caches(), models(), quality(), process()]
    return {
        "uid": "hlorank",
        "title": "hlorank",
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [datasource, servers, chosen_models]},
        "panels": panels_json(rows),
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1))
