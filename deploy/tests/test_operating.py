"""OPERATING.md lists every setting and every alert."""

import re

import yaml
from sources import DEPLOY, server_settings

PAGE = (DEPLOY / "OPERATING.md").read_text()
RULES = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())


def first_cells(heading: str) -> str:
    """Returns the first column of the table under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return "\n".join(rows)


def test_every_setting_is_on_the_page_and_nothing_else():
    flags = {
        name.replace("HLORANK_", "--", 1).replace("_", "-").lower() for name in server_settings()
    }
    assert set(re.findall(r"`(--[a-z-]+)`", first_cells("Settings"))) == flags


def test_every_alert_is_on_the_page_with_what_to_do():
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    alerts = {rule["alert"] for rule in rules if "alert" in rule}
    assert set(re.findall(r"`(Hlorank\w+)`", first_cells("Alerts"))) == alerts


def test_metrics_that_the_page_names_are_metrics():
    metrics = set(re.findall(r"`(hlorank_\w+)`", (DEPLOY / "METRICS.md").read_text()))
    assert set(re.findall(r"`(hlorank_\w+)`", PAGE)) <= metrics
