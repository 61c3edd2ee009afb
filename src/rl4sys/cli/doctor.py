"""`rl4sys doctor`: what is here, what is missing, and how to get it."""

from __future__ import annotations

from typing import Annotated

import typer

from rl4sys.cli.inventory import inventory, machine


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Show what is installed, which devices there are, what is missing and how to get it.

    [bold]Examples[/]

      rl4sys doctor

      rl4sys doctor --json
    """
    from rl4sys.cli.output import print_json, print_table, show

    facts = inventory()
    if json:
        print_json(facts)
        return
    rows = [
        [part["name"], part["version"] or "missing", part["purpose"], "" if part["version"] else part["install"]]
        for part in facts["parts"]
    ]
    print_table((f"rl4sys {facts['rl4sys']}", "version", "for", "how to get it"), rows)
    for line in machine(facts):
        show(line)
