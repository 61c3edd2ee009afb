from __future__ import annotations

import sys
from pathlib import Path

import optuna
import optuna_dashboard
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from rl4sys.cli import study_dashboard
from rl4sys.cli.study_dashboard import DashboardUnavailable, open_dashboard
from rl4sys.laboratory.studies.study_summary import JOURNAL, STUDY


def test_a_missing_study_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DashboardUnavailable, match=r"There is no study in .* yet; start it"):
        open_dashboard(tmp_path)


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    monkeypatch.setattr(study_dashboard.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DashboardUnavailable, match=r"pip install 'rl4sys\[tune\]'"):
        open_dashboard(tmp_path)


def test_the_dashboard_reads_the_journal_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = JournalStorage(JournalFileBackend(str(tmp_path / JOURNAL)))
    optuna.create_study(study_name=STUDY, storage=written)
    served: list[tuple[str, int, list[str]]] = []

    def run_server(storage: JournalStorage, host: str, port: int) -> None:
        served.append((host, port, [study.study_name for study in storage.get_all_studies()]))

    monkeypatch.setattr(optuna_dashboard, "run_server", run_server)
    open_dashboard(tmp_path)
    assert served == [("127.0.0.1", 8266, [STUDY])]
