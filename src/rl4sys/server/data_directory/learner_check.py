"""The check of one learner: its log, checkpoints, identities, versions, setup, lineage, orders. It changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rl4sys.checkpoints import Checkpoints
from rl4sys.records import RecordsDamaged
from rl4sys.server.data_directory.findings import DataFinding
from rl4sys.server.data_directory.log_scan import LogScan, scan
from rl4sys.server.learners.learner_setup import LearnerSetup, SetupDamaged
from rl4sys.server.learners.lineage import Lineage
from rl4sys.server.learners.operator_orders import OperatorOrders
from rl4sys.server.learners.stored_segments import StoredSegments
from rl4sys.server.learners.version_archive import parse_archive

_KEPT = 2
"""How many checkpoints a server keeps."""
_NOTHING = "Nothing: the server copes with it."


@dataclass(slots=True)
class LearnerCheck:
    """What was found about one learner. `log` is None for one that has never stored anything."""

    directory: Path
    findings: list[DataFinding] = field(default_factory=list)
    log: LogScan | None = None
    sound: list[int] = field(default_factory=list)
    """Positions of checkpoints whose bytes are those that were written, oldest first."""
    damaged: dict[int, str] = field(default_factory=dict)
    """Positions of other checkpoints, and what is wrong."""
    stored: int | None = None
    """The position of the file of identities; None if it is missing or cannot be read."""
    is_stored_damaged: bool = False
    is_held: bool = False
    """Whether the server would learn and store nothing before an operator decides between the ways out."""

    @property
    def covered(self) -> int:
        """Records below this are not needed."""
        return min(self.sound[-1], self.stored) if self.sound and self.stored is not None else 0

    @property
    def acknowledged(self) -> int:
        """One past the last record that is known to have been acknowledged."""
        return max(self.log.known, self.log.end) if self.log is not None else 0

    @property
    def problems(self) -> bool:
        """Whether anything matters."""
        return any(finding.matters for finding in self.findings)

    def add(self, what: str, where: Path, advice: str = _NOTHING, *, matters: bool = True) -> None:
        """Note a finding."""
        self.findings.append(DataFinding(self.directory.name, what, str(where), matters, advice))


def check_learner(directory: Path, *, is_live: bool) -> LearnerCheck:
    """Read everything. The order matters while a server is writing: what must not be ahead of the log is read first."""
    check = LearnerCheck(directory)
    _check_setup(check)
    _check_checkpoints(check, is_live=is_live)
    _check_stored(check)
    _check_versions(check)
    check.log = scan(directory / "log", is_live=is_live)
    if check.log is not None:
        _check_log(check, check.log)
    elif records := max([check.stored or 0, *check.sound]):
        _hold(check, f"{records} records were stored, and there is no log.", directory / "log")
    _note_damaged_checkpoints(check)
    return check


def ways_out_of(directory: Path) -> str:
    """The commands between which an operator has to decide."""
    repair = f"rl4sys data repair {directory.parent.parent} --learner '{directory.name}'"
    return (
        f"Restore a backup. Or keep the weights of the newest sound checkpoint: {repair} --from-checkpoint. Or learn "
        f"again from the readable log: {repair} --from-log."
    )


def _check_setup(check: LearnerCheck) -> None:
    directory = check.directory
    try:
        setup = LearnerSetup.read(directory)
        if setup.learner != directory.name:
            check.add(
                f"The setup is that of learner '{setup.learner}'.",
                directory / "setup.json",
                f"Rename the directory to '{setup.learner}', or restore the file from a backup.",
            )
    except (SetupDamaged, OSError) as error:
        check.add(str(error), directory / "setup.json", "Restore the file from a backup.")
    try:
        Lineage.read(directory)
    except (SetupDamaged, OSError) as error:
        check.add(str(error), directory / "lineage.json", "Restore the file from a backup.")
    try:
        OperatorOrders(directory)
    except (SetupDamaged, OSError) as error:
        check.add(str(error), directory / "orders.json", "Restore the file from a backup, or remove it.")


def _check_checkpoints(check: LearnerCheck, *, is_live: bool) -> None:
    checkpoints = Checkpoints(check.directory / "checkpoints", keep=0)
    for step in checkpoints.steps():
        fault = checkpoints.fault(step)
        if fault is None:
            check.sound.append(step)
        elif step in checkpoints.steps()[-_KEPT if is_live else None :]:
            # One that a server is removing meanwhile is no damage.
            check.damaged[step] = fault


def _check_stored(check: LearnerCheck) -> None:
    try:
        check.stored = StoredSegments.read(check.directory, first=1).position
    except RecordsDamaged:
        check.is_stored_damaged = (check.directory / "stored.json").exists()


def _check_versions(check: LearnerCheck) -> None:
    place = check.directory / "versions"
    lineages, highest, readable = set[str](), -1, -1
    for path in sorted(place.glob("*.versions")):
        try:
            contents = parse_archive(path.read_bytes())
        except FileNotFoundError:
            # The server has replaced it by a newer one.
            continue
        if contents.fault:
            check.add(f"Published versions cannot be read: {contents.fault}.", path, _FOLDED_AGAIN, matters=False)
        if contents.description is not None:
            lineages.add(contents.description.lineage)
            highest = max(highest, contents.highest)
            readable = max([readable, *(version.number for version in contents.versions)])
    if highest > readable:
        check.add(
            f"Version {highest} was published, and {readable if readable >= 0 else 'none'} can be read.",
            place,
            _FOLDED_AGAIN,
            matters=False,
        )
    if lineages - {""} and not (check.directory / "lineage.json").exists():
        check.add(
            "There are published versions, and the lineage that they belong to is missing.",
            check.directory / "lineage.json",
            f"Restore the file from a backup, or move {place} away to start over.",
        )


_FOLDED_AGAIN = "Nothing: clients keep theirs while the server folds the log again, up to the published version."


def _check_log(check: LearnerCheck, log: LogScan) -> None:
    for gap in log.gaps:
        records = f"Record {gap.begin} and the {gap.end - gap.begin - 1} after it" if gap.end > gap.begin else "Bytes"
        where = log.directory / f"{gap.path.name}, byte {gap.offset}"
        if gap.end <= check.covered:
            check.add(f"{records} cannot be read; a sound checkpoint has learned from them.", where, matters=False)
        else:
            _hold(check, f"{records} cannot be read, and were acknowledged.", where)
    for path, fault in log.header_faults:
        is_covered = int(path.stem) < check.covered
        advice = _NOTHING if is_covered else f"{_repair(check)} writes it again; its records are not affected."
        check.add(f"The header of a file is damaged: {fault}.", path, advice, matters=not is_covered)
    if log.torn is not None:
        path, offset = log.torn
        size = path.stat().st_size - offset
        check.add(f"The last {size} bytes were written in part, and never acknowledged.", path, matters=False)
    if log.unsynced:
        check.add(
            f"{log.unsynced} acknowledged records were not on the disk when the machine stopped.",
            log.directory,
            "Nothing can bring them back. Serve with durability: fsync where that must not happen.",
            matters=False,
        )
    if not log.has_ends:
        check.add("The file 'committed' is missing or damaged.", log.directory / "committed", matters=False)
    newest = check.sound[-1] if check.sound else 0
    if newest > log.end:
        _hold(
            check,
            f"The log ends before record {log.end}, and there is a sound checkpoint of {newest} records.",
            log.directory,
        )
    if (check.stored or 0) > max(log.end, newest):
        _hold(check, f"The log ends before record {log.end}, and {check.stored} records were stored.", log.directory)
    if log.first > newest:
        text = f"Records before {log.first} were learned from and removed, and no readable checkpoint covers them."
        _hold(check, text, log.directory)
    if log.first > (check.stored or 0):
        text = f"The identities of the records before {log.first} cannot be read: segments could be learned from twice."
        _hold(check, text, check.directory / "stored.json")
    elif check.is_stored_damaged:
        text = "The file of identities is damaged; the log has everything that it would say."
        check.add(text, check.directory / "stored.json", matters=False)


def _note_damaged_checkpoints(check: LearnerCheck) -> None:
    """A damaged checkpoint does not matter if the learner can begin from another one, or from the whole log."""
    can_begin = bool(check.sound) or (check.log is not None and check.log.first == 0)
    for step, fault in check.damaged.items():
        advice = f"Nothing: an older state and the log lead to the same weights. {_repair(check)} moves it aside."
        check.add(
            f"A checkpoint is damaged: {fault}.",
            check.directory / "checkpoints" / f"{step:012d}",
            advice if can_begin and not check.is_held else "Restore it from a backup.",
            matters=not can_begin,
        )


def _hold(check: LearnerCheck, what: str, where: Path) -> None:
    check.is_held = True
    check.add(what, where, ways_out_of(check.directory))


def _repair(check: LearnerCheck) -> str:
    return f"rl4sys data repair {check.directory.parent.parent}"
