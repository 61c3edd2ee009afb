"""The pages of sweeps and studies: progress, trials, and which values led to which scores."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rl4sys.laboratory.trials.names import short_names
from rl4sys.ui.layout import NavigationEntry, PageLayout, json_answer
from rl4sys.ui.parallel_coordinates import PlottedTrial, parallel_coordinates
from rl4sys.ui.run_library import RunLibrary
from rl4sys.ui.tables import Table, csv_answer, table_answer
from rl4sys.ui.trial_plans import StudyUnreadable, TrialPlan, TrialPlans

ENTRY = NavigationEntry("Sweeps", "/sweeps")
PATH = "/sweep"
_SORTED = ("score", "trial", "status", "steps")
_SHOWN = 500
"""Trials in the table; all of them are in the JSON and the CSV."""


class StudyPages:
    """Answers requests about sweeps and studies."""

    def __init__(self, layout: PageLayout, library: RunLibrary) -> None:
        self._layout, self._library, self._plans = layout, library, TrialPlans(library)

    def routes(self) -> list[Route]:
        """The list, and a page for each; the id may contain slashes."""
        return [
            Route(ENTRY.path, self.overview),
            Route(f"{ENTRY.path}.json", self.overview_table),
            Route(f"{ENTRY.path}.csv", self.overview_table),
            Route(f"{PATH}/{{name}}/{{id:path}}", self.page),
        ]

    def overview(self, request: Request) -> Response:
        """All sweeps and studies with their progress."""
        found, problems = self._overview()
        rows = [(name, plan, _progress(plan)["best"]) for name, plan in found]
        return self._layout.page("studies.html", ENTRY.path, rows=rows, problems=problems, roots=self._roots())

    def overview_table(self, request: Request) -> Response:
        """The same as a table."""
        rows = [
            {"kind": plan.kind, "id": plan.id, "directory": f"{self._library.root(name)}/{plan.id}", **_progress(plan)}
            for name, plan in self._overview()[0]
        ]
        return table_answer(Table.of(rows), request.url.path.removeprefix(ENTRY.path))

    def page(self, request: Request) -> Response:
        """One sweep or study; with .json what its command prints, with .csv its trials."""
        name, id_ = request.path_params["name"], request.path_params["id"]
        if id_.endswith(".json"):
            return json_answer(self._plans.read(name, id_.removesuffix(".json")).summary)
        if id_.endswith(".csv"):
            return csv_answer(_trial_table(self._plans.read(name, id_.removesuffix(".csv"))))
        plan = self._plans.read(name, id_)
        values = self._values(name, plan, request)
        if "fragment" in request.query_params:
            return HTMLResponse(self._layout.text("study_body.html", **values))
        return self._layout.page("study.html", ENTRY.path, **values)

    def _values(self, name: str, plan: TrialPlan, request: Request) -> dict[str, Any]:
        sort = request.query_params.get("sort", "score")
        trials = sorted(enumerate(plan.trials), key=lambda each: (each[1].score is None, -(each[1].score or 0.0)))
        if sort == "trial":
            trials.sort(key=lambda each: each[0])
        elif sort in ("status", "steps"):
            trials.sort(key=lambda each: each[1].status if sort == "status" else -each[1].steps)
        plotted = [
            PlottedTrial(
                f"{trial.name}: {trial.label}",
                trial.values,
                trial.score,
                trial.run and quote(f"/run/{name}/{trial.run}"),
            )
            for trial in plan.trials
        ]
        return {
            "name": name,
            "plan": plan,
            "place": f"{self._library.root(name)}/{plan.id}",
            "trials": [trial for _, trial in trials[:_SHOWN]],
            "columns": short_names(list(dict.fromkeys(key for trial in plan.trials for key in trial.values))),
            "drawing": parallel_coordinates(plotted, plan.score),
            "sort": sort,
            "sorts": _SORTED,
            "address": quote(f"{PATH}/{name}/{plan.id}"),
        }

    def _overview(self) -> tuple[list[tuple[str, TrialPlan]], list[str]]:
        rows, problems = [], []
        for name in self._library.names:
            for _, id_ in self._plans.find(name):
                try:
                    rows.append((name, self._plans.read(name, id_)))
                except StudyUnreadable as error:
                    problems.append(str(error))
        return rows, problems

    def _roots(self) -> list[str]:
        return [str(self._library.root(name)) for name in self._library.names]


def _progress(plan: TrialPlan) -> dict[str, Any]:
    scores = [trial.score for trial in plan.trials if trial.score is not None and trial.status == "finished"]
    return {"trials": plan.total, "ended": plan.ended, "best": max(scores, default=None)} | plan.counts


def _trial_table(plan: TrialPlan) -> Table:
    return Table.of(
        [
            {
                "trial": trial.name,
                "status": trial.status,
                "score": trial.score,
                "steps": trial.steps,
                "run": trial.run,
                "origin": trial.origin,
                "cause": trial.cause,
                **trial.values,
            }
            for trial in plan.trials
        ]
    )
