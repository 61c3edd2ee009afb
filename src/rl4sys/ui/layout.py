"""The frame of all pages: templates, navigation and answers that are not pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from rl4sys import __version__
from rl4sys.ui.formatting import FILTERS


class NavigationEntry(NamedTuple):
    """A page that every page links to."""

    title: str
    path: str


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Renders templates into pages. Everything that a template inserts is escaped."""

    navigation: tuple[NavigationEntry, ...]
    templates: Environment

    @classmethod
    def create(cls, navigation: Sequence[NavigationEntry]) -> PageLayout:
        """A layout with the templates of this package."""
        templates = Environment(
            loader=PackageLoader("rl4sys.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        templates.filters.update(FILTERS)
        templates.globals["version"] = __version__
        return cls(tuple(navigation), templates)

    def text(self, template: str, **values: Any) -> str:
        """A template as HTML."""
        return self.templates.get_template(template).render(values)

    def page(self, template: str, path: str, status_code: int = 200, **values: Any) -> HTMLResponse:
        """A whole page; `path` is the entry of the navigation that it belongs to."""
        text = self.text(template, navigation=self.navigation, current=path, **values)
        return HTMLResponse(text, status_code)

    def problem(self, path: str, sentence: str, status_code: int = 200, *, is_temporary: bool = False) -> HTMLResponse:
        """A page with one sentence that says what is wrong; a temporary one loads itself again."""
        return self.page("problem.html", path, status_code, sentence=sentence, is_temporary=is_temporary)


def json_answer(value: Any) -> Response:
    """A value as the commands print it with `--json`."""
    return Response(json.dumps(value, indent=1) + "\n", media_type="application/json")
