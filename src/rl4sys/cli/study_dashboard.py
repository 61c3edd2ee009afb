"""`rl4sys tune --dashboard`: Optuna's own dashboard on the journal of a study."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from rl4sys.cli.output import report
from rl4sys.laboratory.studies.study_summary import JOURNAL

_ADDRESS = "127.0.0.1:8266"


class DashboardUnavailable(RuntimeError):
    """The dashboard is not installed, there is no study, or the port is taken."""


def open_dashboard(place: Path) -> None:
    """Serve the dashboard until Ctrl-C. It reads the journal, which may be growing."""
    journal = place / JOURNAL
    if importlib.util.find_spec("optuna_dashboard") is None:
        raise DashboardUnavailable(
            "The dashboard needs the package 'optuna-dashboard'. Install it with: pip install 'rl4sys[tune]'"
        )
    if not journal.is_file():
        raise DashboardUnavailable(
            f"There is no study in {place} yet; start it with the same command without --dashboard."
        )
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna_dashboard import run_server

    host, _, port = _ADDRESS.rpartition(":")
    report(f"dashboard of {place} at http://{_ADDRESS}/  (Ctrl-C ends)")
    try:
        run_server(JournalStorage(JournalFileBackend(str(journal))), host=host, port=int(port))
    except OSError as error:
        raise DashboardUnavailable(f"Cannot listen on {_ADDRESS}: {error.strerror}.") from None
    except KeyboardInterrupt:
        sys.stderr.write("\n")
