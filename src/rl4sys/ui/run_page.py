"""The page of one run: its curves, settings, evaluations, videos, output, and where and how it was trained."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from rl4sys.laboratory.run_index.filters import RunFilter
from rl4sys.laboratory.run_index.labels import EmptyNote, Labels, LabelsDamaged, WrongTag, change_labels, read_labels
from rl4sys.laboratory.run_index.records import RunRecord, Status
from rl4sys.laboratory.run_index.run_description import describe_run
from rl4sys.run_files import RETURN, TRAINING_RETURN, final_metrics, read_config
from rl4sys.ui.curve_events import curve_events
from rl4sys.ui.known_files import known_file
from rl4sys.ui.layout import PageLayout
from rl4sys.ui.live_updates import LiveStreams
from rl4sys.ui.metric_curves import TIMING, MetricCurves, thinned
from rl4sys.ui.run_facts import (
    RunEvent,
    command_of,
    evaluations_of,
    events_of,
    files_of,
    manifest_of,
    process_of,
    result_of,
    seconds_of,
    settings_of_run,
    tail_of,
    videos_of,
)
from rl4sys.ui.run_library import RunLibrary, UnknownRun
from rl4sys.ui.runs_page import runs_address
from rl4sys.ui.security import form_fields, form_token
from rl4sys.ui.tables import Table, UnknownTable, table_answer

PATH = "/run"
MOST_CHARTS = 12
VIEWS = {
    "curves": "Curves",
    "settings": "Settings",
    "evaluations": "Evaluations",
    "videos": "Videos",
    "output": "Output",
    "machine": "Machine and hashes",
}
_TABLES = ("settings", "evaluations", "seeds", "metrics", "events")
_FIRST = (
    RETURN,
    TRAINING_RETURN,
    "train/value_loss",
    "train/policy_loss",
    "train/entropy",
    "train/q_loss",
    "train/loss",
)
_FIRST_CHARTS = 4
_GROUPS = ("evaluation", "rollout", "train")
"""The groups of metrics that are listed first."""


class ShownRun(NamedTuple):
    """A run that is asked for."""

    name: str
    """Of its directory of runs."""
    root: Path
    record: RunRecord

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return self.root / self.record.id


class RunPages:
    """Answers requests about single runs."""

    def __init__(self, layout: PageLayout, library: RunLibrary, curves: MetricCurves, streams: LiveStreams) -> None:
        self._layout, self._library, self._curves, self._streams = layout, library, curves, streams

    def routes(self) -> list[Route]:
        """A path for each kind of answer; the id of a run, which may contain slashes, is at its end."""
        return [
            Route(f"{PATH}/{{name}}/{{id:path}}", self.page),
            Route(f"{PATH}-curves/{{name}}/{{id:path}}", self.curves),
            Route(f"{PATH}-live/{{name}}/{{id:path}}", self.live),
            Route(f"{PATH}-file/{{name}}/{{id:path}}", self.file),
            Route(f"{PATH}-labels/{{name}}/{{id:path}}", self.labels, methods=["POST"]),
        ]

    def page(self, request: Request) -> Response:
        """The page; with .json or .csv behind the id, one of its tables."""
        id_ = request.path_params["id"]
        for ending in (".json", ".csv"):
            if id_.endswith(ending):
                return self._table(self._find(request, id_.removesuffix(ending)), ending, request)
        shown = self._find(request)
        if request.query_params.get("fragment") == "head":
            return HTMLResponse(self._layout.text("run_head.html", **self._head(shown)))
        view = request.query_params.get("view", "curves")
        if view not in VIEWS:
            raise UnknownRun(f"There is no view '{view}' of a run; there are {', '.join(VIEWS)}.")
        values = self._head(shown) | {
            "view": view,
            "views": VIEWS,
            "labels": _labels(shown.directory),
            "labels_path": f"{PATH}-labels/{shown.name}/{shown.record.id}",
            "siblings": self._siblings(shown),
            "events": events_of(shown.directory),
        }
        values["label_token"] = form_token(request, values["labels_path"])
        return self._layout.page("run.html", "/runs", **values, **self._view(view, shown, request))

    def curves(self, request: Request) -> Response:
        """The curves of some metrics as a table: a row for each step and metric."""
        id_, ending = _split_ending(request.path_params["id"])
        shown = self._find(request, id_)
        rows = []
        for metric in request.query_params.getlist("metric") or [RETURN]:
            points = self._curves.read(shown.directory, metric).points()
            points = thinned(points) if request.query_params.get("thin", "1") != "0" else points
            rows += [{"step": int(step), "metric": metric, "value": value} for step, value in points.tolist()]
        return table_answer(Table(("step", "metric", "value"), rows), ending)

    async def live(self, request: Request) -> Response:
        """The curves of some metrics as events: all of them first, and then what is added."""
        name, id_ = request.path_params["name"], request.path_params["id"]
        metrics = request.query_params.getlist("metric")[:MOST_CHARTS]
        return self._streams.respond(curve_events(self._library, self._curves, name, id_, metrics))

    def file(self, request: Request) -> Response:
        """A file of the run, by a known name."""
        shown = self._find(request)
        name = request.query_params.get("name", "")
        path = known_file(shown.directory, name, files_of(shown.directory))
        media = None if path.suffix in (".mp4", ".png") else "text/plain; charset=utf-8"
        return FileResponse(path, media_type=media)

    def labels(self, request: Request) -> Response:
        """Change tags or add a note, and show the page again."""
        shown, fields = self._find(request), form_fields(request)
        now = datetime.datetime.now().astimezone()

        def change(labels: Labels) -> Labels:
            wanted = fields.get("tags")
            if wanted is not None:
                removed = [f"-{tag}" for tag in labels.tags if tag not in wanted.split()]
                labels = labels.tagged([*removed, *(f"+{tag}" for tag in wanted.split())])
            note = fields.get("note", "")
            return labels.noted(note, now) if note.strip() else labels

        try:
            change_labels(shown.directory, change)
        except (WrongTag, EmptyNote, LabelsDamaged) as error:
            return self._layout.problem("/runs", str(error), 400)
        return RedirectResponse(quote(f"{PATH}/{shown.name}/{shown.record.id}"), 303)

    def _find(self, request: Request, id_: str | None = None) -> ShownRun:
        name = request.path_params["name"]
        return ShownRun(name, self._library.root(name), self._library.find(name, id_ or request.path_params["id"]))

    def _head(self, shown: ShownRun) -> dict[str, Any]:
        record = shown.record
        speed = self._curves.read(shown.directory, f"{TIMING}steps_per_second").values
        left = record.total - record.steps
        now = datetime.datetime.now().astimezone()
        return {
            "name": shown.name,
            "root": shown.root,
            "runs_link": runs_address(self._library, shown.name),
            "algorithm_link": runs_address(self._library, shown.name, f"algorithm={record.algorithm}"),
            "environment_link": runs_address(self._library, shown.name, f"env={record.environment}"),
            "record": record,
            "speed": speed[-1] if speed else None,
            "seconds_left": left / speed[-1] if record.status is Status.RUNNING and speed and speed[-1] > 0 else None,
            "seconds": seconds_of(process_of(shown.directory), now),
            "heard_seconds": None if record.heard is None else max(0.0, time.time() - record.heard),
        }

    def _siblings(self, shown: ShownRun) -> Sequence[RunRecord]:
        """Runs that differ in their seed only, this one included."""
        if not shown.record.config:
            return ()
        same = RunFilter("config = ?", (shown.record.config,))
        return self._library.matching(shown.name, same, "seed, created, id", limit=50)

    def _view(self, view: str, shown: ShownRun, request: Request) -> dict[str, Any]:
        run = shown.directory
        match view:
            case "curves":
                final = final_metrics(run)
                chosen = request.query_params.getlist("metric")[:MOST_CHARTS]
                first = [name for name in _FIRST if name in final] or sorted(final)
                names = {group: list(members) for group, members in _grouped(sorted(final))}
                return {"final": final, "groups": names, "chosen": chosen or first[:_FIRST_CHARTS]}
            case "settings":
                return {"settings": _settings(shown), "command": command_of(manifest_of(run))}
            case "evaluations":
                evaluations = evaluations_of(run)
                columns = list(dict.fromkeys(name for each in evaluations for name in each.values))
                return {"evaluations": evaluations[::-1], "columns": columns}
            case "videos":
                return {"videos": videos_of(run)}
            case "output":
                return {"tails": [tail for name in ("error.txt", "output.txt") if (tail := tail_of(run, name))]}
            case _:
                manifest = manifest_of(run)
                return {
                    "manifest": manifest,
                    "command": command_of(manifest),
                    "process": process_of(run),
                    "result": result_of(run),
                    "files": files_of(run),
                }

    def _table(self, shown: ShownRun, ending: str, request: Request) -> Response:
        """The whole run as JSON, as `rl4sys show` prints it, or one of its tables."""
        match request.query_params.get("table", ""):
            case "settings":
                rows = [setting._asdict() for setting in _settings(shown)]
                return table_answer(Table(("key", "value", "origin"), rows), ending)
            case "evaluations":
                found = [{"step": each.step, **each.values} for each in evaluations_of(shown.directory)]
                return table_answer(Table.of(found), ending)
            case "seeds":
                records = [record.json_values(shown.root) for record in self._siblings(shown)]
                return table_answer(Table.of(records), ending)
            case "metrics":
                final = final_metrics(shown.directory)
                rows = [{"metric": name, "last": value} for name, value in sorted(final.items())]
                return table_answer(Table(("metric", "last"), rows), ending)
            case "events":
                rows = [event._asdict() for event in events_of(shown.directory, most=0)[::-1]]
                return table_answer(Table(RunEvent._fields, rows), ending)
            case "":
                pass
            case unknown:
                raise UnknownTable(unknown, _TABLES)
        return table_answer(Table.of([describe_run(shown.root, shown.record)]), ending, is_single=True)


def _settings(shown: ShownRun) -> list[Any]:
    try:
        return list(settings_of_run(read_config(shown.directory), manifest_of(shown.directory)))
    except (OSError, ValueError):
        return []


def _labels(run: Path) -> Labels:
    try:
        return read_labels(run)
    except LabelsDamaged:
        return Labels()


def _grouped(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Metrics by the part before the slash."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.partition("/")[0] if "/" in name else "other", []).append(name)
    return sorted(groups.items(), key=lambda group: _GROUPS.index(group[0]) if group[0] in _GROUPS else len(_GROUPS))


def _split_ending(text: str) -> tuple[str, str]:
    for ending in (".json", ".csv"):
        if text.endswith(ending):
            return text.removesuffix(ending), ending
    return text, ".json"
