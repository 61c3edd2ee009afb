"""The application behind `rl4sys ui`: the pages and what they share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from rl4sys.laboratory.comparison.comparison import NothingToCompare
from rl4sys.laboratory.run_index.filters import WrongFilter
from rl4sys.laboratory.run_index.index import IndexBusy, NoRuns
from rl4sys.ui import compare_page, fleet_page, runs_page, studies_page
from rl4sys.ui.compare_page import ComparePages
from rl4sys.ui.fleet import Fleet, UnknownServer
from rl4sys.ui.index_thread import IndexNotReady
from rl4sys.ui.known_files import UnknownFile
from rl4sys.ui.layout import NavigationEntry, PageLayout
from rl4sys.ui.learner_page import LearnerPages
from rl4sys.ui.live_updates import LiveStreams
from rl4sys.ui.metric_curves import MetricCurves
from rl4sys.ui.operator_commands import WrongCommand
from rl4sys.ui.run_comparison import RunComparisons
from rl4sys.ui.run_library import RunLibrary, UnknownRun
from rl4sys.ui.run_page import RunPages
from rl4sys.ui.settings import UiSettings
from rl4sys.ui.studies_page import StudyPages
from rl4sys.ui.tables import UnknownTable
from rl4sys.ui.trial_plans import StudyUnreadable

_ProblemPage = Callable[[Request, Exception], Response]


def build_app(settings: UiSettings, fleet: Fleet | None = None) -> Starlette:
    """The pages that the settings ask for: those of runs and those of servers."""
    library = RunLibrary(settings.runs)
    layout = PageLayout.create(_navigation(settings))
    streams, curves = LiveStreams(), MetricCurves()
    fleet = fleet or Fleet.connect(settings.servers, settings.access, settings.ask_seconds)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        fleet.start()
        yield
        await fleet.stop()
        library.close()

    routes: list[BaseRoute] = [Mount("/static", StaticFiles(packages=[("rl4sys.ui", "static")]), name="static")]
    if settings.runs:
        routes += runs_page.routes(layout, library, streams)
        routes += RunPages(layout, library, curves, streams).routes()
        routes += ComparePages(layout, library, RunComparisons(curves)).routes()
        routes += StudyPages(layout, library).routes()
    if fleet.servers:
        routes += fleet_page.routes(layout, fleet, streams)
        routes += LearnerPages(layout, fleet, streams, settings.access).routes()
    if layout.navigation:
        first = layout.navigation[0].path
        routes.append(Route("/", lambda request: RedirectResponse(first)))
    app = Starlette(routes=routes, lifespan=life, exception_handlers=_problems(layout))
    app.state.streams = streams
    return app


def _navigation(settings: UiSettings) -> Sequence[NavigationEntry]:
    entries = []
    if settings.runs:
        entries += [runs_page.ENTRY, compare_page.ENTRY, studies_page.ENTRY]
    if settings.servers:
        entries.append(fleet_page.ENTRY)
    return entries


def _problems(layout: PageLayout) -> Mapping[int | type[Exception], _ProblemPage]:
    """Pages with one sentence, for everything that a user can cause; the process stays up."""

    def problem(status_code: int, *, is_temporary: bool = False) -> _ProblemPage:
        def page(request: Request, error: Exception) -> Response:
            path = "/" + request.url.path.split("/")[1]
            return layout.problem(path, str(error), status_code, is_temporary=is_temporary)

        return page

    def nothing_here(request: Request, error: Exception) -> Response:
        return layout.problem("", f"There is no page at {request.url.path}.", 404)

    def removed(request: Request, error: Exception) -> Response:
        name = error.filename if isinstance(error, OSError) else None
        return layout.problem("", f"{name or error} is not there any more; the run may have been removed.", 404)

    def unexpected(request: Request, error: Exception) -> Response:
        sentence = (
            f"This page could not be made: {type(error).__name__}: {error}. The terminal of `rl4sys ui` has more."
        )
        return layout.problem("", sentence, 500)

    return {
        404: nothing_here,
        500: unexpected,
        FileNotFoundError: removed,
        UnknownRun: problem(404),
        UnknownFile: problem(404),
        UnknownTable: problem(404),
        UnknownServer: problem(404),
        WrongCommand: problem(400),
        WrongFilter: problem(400),
        NothingToCompare: problem(400),
        StudyUnreadable: problem(503),
        NoRuns: problem(404, is_temporary=True),
        IndexBusy: problem(503, is_temporary=True),
        IndexNotReady: problem(503, is_temporary=True),
    }
