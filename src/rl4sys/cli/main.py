"""The program `rl4sys`: runs a command, and prints errors in one line."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from typing import NoReturn

from rl4sys.cli.exit_codes import ERROR, NO, SomeFailed
from rl4sys.run_files import ERROR as RUN_ERROR

OPERATIONS = ("status", "token", "learners", "control", "docs")
"""Commands for operators, which need the extra `ops` only."""


def main() -> NoReturn:
    """Run a command; an error is printed in one line, with --debug as a traceback."""
    debug = "--debug" in sys.argv
    try:
        # Imported here, so that a missing extra can be reported.
        from rl4sys.cli.commands import build_for, with_known_options
        from rl4sys.cli.output import send_logs

        send_logs(debug=debug)
        arguments = with_known_options(sys.argv[1:])
        build_for(arguments)(args=arguments)
    except ModuleNotFoundError as error:
        if sys.argv[1:] == ["--version"] or sys.argv[1:2] == ["doctor"]:
            _run_without_extras()
        _fail(error, debug=debug)
    except Exception as error:  # the last resort of the program: print any error and fail
        _fail(error, debug=debug)
    raise SystemExit(0)


def _fail(error: Exception, *, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exception(error)
    else:
        sys.stderr.write(f"error: {explain(error)}\n")
    raise SystemExit(NO if isinstance(error, SomeFailed) else ERROR) from None


def _run_without_extras() -> NoReturn:
    """Print what must work without any extra: the version, or the inventory."""
    # Imported here: searching for packages takes longer than many commands.
    from rl4sys.cli.inventory import inventory, lines

    found = inventory()
    if sys.argv[1] == "--version":
        sys.stdout.write(f"rl4sys {found['rl4sys']}\n")
    elif "--json" in sys.argv:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(lines(found)) + "\n")
    raise SystemExit(0)


def explain(error: Exception) -> str:
    """An error in one line, with what to do next."""
    text = str(error) or type(error).__name__
    notes = [note for note in getattr(error, "__notes__", ()) if RUN_ERROR in note]
    if type(error).__module__.startswith("rl4sys."):
        return text
    if notes:
        return f"{type(error).__name__}: {text}, {notes[-1]}"
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("rl4sys"):
        package = str(error.name).partition(".")[0]
        extra = "ops" if package in ("typer", "rich") and sys.argv[1:2] and sys.argv[1] in OPERATIONS else "train"
        return f"this needs the package '{package}'. Install it with: pip install 'rl4sys[{extra}]'"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f" ({error.filename})" if error.filename else ""
        return f"the disk is full{place}. Nothing that was saved before is lost; free some space and try again."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    frames = traceback.extract_tb(error.__traceback__)
    place = f"at {frames[-1].filename}:{frames[-1].lineno}; " if frames else ""
    return f"{type(error).__name__}: {text}\n({place}run again with --debug for the traceback)"


if __name__ == "__main__":
    main()
