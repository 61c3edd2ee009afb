"""The command `rl4sys`: starts a command, and tells in one line what goes wrong."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from typing import NoReturn

from rl4sys.cli.exit_codes import NO, TROUBLE, SomeFailed


def main() -> NoReturn:
    """Run a command; what goes wrong is told in one line, and in full with --debug."""
    debug = "--debug" in sys.argv
    try:
        # Here and not above: without the extra the command must still be able to name it.
        from rl4sys.cli.commands import build_for
        from rl4sys.cli.output import send_logs

        send_logs(debug=debug)
        build_for(sys.argv[1:])()
    except ModuleNotFoundError as error:
        if sys.argv[1:] == ["--version"] or sys.argv[1:2] == ["doctor"]:
            _serve_plainly()
        _fail(error, debug=debug)
    except Exception as error:  # the last resort of a program: whatever it is, say it and fail
        _fail(error, debug=debug)
    raise SystemExit(0)


def _fail(error: Exception, *, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exception(error)
    else:
        sys.stderr.write(f"error: {explain(error)}\n")
    raise SystemExit(NO if isinstance(error, SomeFailed) else TROUBLE) from None


def _serve_plainly() -> NoReturn:
    """What must work without any extra: the version, and the list of what is missing."""
    # Here and not above: looking for packages takes longer than many a command.
    from rl4sys.cli.inventory import inventory, lines

    facts = inventory()
    if sys.argv[1] == "--version":
        sys.stdout.write(f"rl4sys {facts['rl4sys']}\n")
    elif "--json" in sys.argv:
        sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(lines(facts)) + "\n")
    raise SystemExit(0)


def explain(error: Exception) -> str:
    """What went wrong and how to go on, as short as it can be said."""
    text = str(error) or type(error).__name__
    if type(error).__module__.startswith("rl4sys."):
        return text
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("rl4sys"):
        package = str(error.name).partition(".")[0]
        return f"this needs the package '{package}'. Install it with: pip install 'rl4sys[train]'"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f" ({error.filename})" if error.filename else ""
        return f"the disk is full{place}. Nothing that was saved before is lost; free some space and try again."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return f"{type(error).__name__}: {text}\n(run again with --debug for the traceback)"


if __name__ == "__main__":
    main()
