"""`rl4sys doctor`: what is installed, what is missing, and how to install it."""

from __future__ import annotations

from rl4sys.cli.inventory import inventory, machine
from rl4sys.cli.options import Debug, Json


def doctor(
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show which packages and devices are available, which are missing, and how to install them.

    [bold]Examples[/]

      rl4sys doctor

      rl4sys doctor --json
    """
    from rl4sys.cli.output import print_json, print_table, show

    found = inventory()
    if json:
        print_json(found)
        return
    rows = [
        [part["name"], part["version"] or "missing", part["purpose"], "" if part["version"] else part["install"]]
        for part in found["parts"]
    ]
    print_table((f"rl4sys {found['rl4sys']}", "version", "used for", "install with"), rows)
    for line in machine(found):
        show(line)
