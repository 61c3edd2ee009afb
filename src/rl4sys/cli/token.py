"""`rl4sys token`: make tokens for a server's token file."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated, Literal

import typer

from rl4sys.cli.options import Debug, Json

token = typer.Typer(
    name="token", no_args_is_help=True, help="Make tokens for a server's token file.", rich_markup_mode="rich"
)


@token.command()
def new(
    clients: Annotated[
        list[str] | None,
        typer.Argument(metavar="CLIENT-ID-PATTERN...", show_default=False, help="Client ids that it may use: lander-*"),
    ] = None,
    role: Annotated[
        Literal["client", "viewer", "operator"],
        typer.Option(help="A viewer may only see the status; an operator may also manage learners."),
    ] = "client",
    name: Annotated[str | None, typer.Option(help="What the audit log calls it, such as alice.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Make a random token, and the line for the token file, which has only its hash.

    Standard output is the token alone; the line is printed to standard error.

    [bold]Examples[/]

      rl4sys token new 'lander-*' > token                     [dim](for clients lander-1, lander-2, …)[/]

      rl4sys token new --role operator --name alice > token
    """
    from rl4sys.cli.output import print_json, report
    from rl4sys.wire.token_hash import hashed_token, new_token

    patterns = clients or []
    if role == "client" and not patterns:
        raise typer.BadParameter("A client's token needs the client ids that it may use, such as 'lander-*'.")
    words = [f"role={role}"] * (role != "client") + ([f"name={name}"] if name else []) + patterns
    for word in words:
        if not word or any(letter.isspace() for letter in word) or word.startswith("#"):
            raise typer.BadParameter(f"{word!r} cannot be a word of a token file: it is empty, or has a space or a #.")
    made = new_token()
    line = " ".join([hashed_token(made), *words])
    if json:
        print_json({"token": made, "line": line})
        return
    sys.stdout.write(f"{made}\n")
    report(f"Add this line to the server's token file, which is read again at once:\n{line}")


@token.command(name="hash")
def hash_token(debug: Debug = False) -> None:
    """Print the hash of a token, to be put into the token file in its place.

    The token is read from standard input, or asked for without showing it, so that it is in no list of processes.

    [bold]Examples[/]

      rl4sys token hash < token

      rl4sys token hash
    """
    from rl4sys.wire.token_hash import hashed_token

    given = getpass.getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not (text := given.strip()):
        raise typer.BadParameter("There is no token on standard input. Give it in one line.")
    sys.stdout.write(f"{hashed_token(text)}\n")
