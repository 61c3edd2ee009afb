from pathlib import Path

import pytest

from .test_generated import PROTOS, script

GOOD = """syntax = "proto3";
package rl4sys.v1;
// Says hello.
service Greeter {
  // Greets. Ends in NOT_FOUND if there is no such name.
  rpc Greet(Greeting) returns (Greeting);
}
// A greeting.
message Greeting {
  // Its words.
  string text = 1;
  // How warm, if known.
  optional uint32 warmth = 2;
  // The rest.
  oneof rest {
    // One way.
    Tone tone = 3;
  }
}
// How it sounds.
enum Tone {
  // Not told.
  TONE_UNSPECIFIED = 0;
}
"""


def problems_of(text: str, tmp_path: Path, recorded: list[str] | None = None, name: str = "greeting") -> list[str]:
    lint = script("lint")
    path = tmp_path / "rl4sys/v1" / f"{name}.proto"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    protos = lint.compiled(tmp_path)
    return list(lint.problems(protos, lint.numbers(protos) if recorded is None else recorded))


def test_the_protos_of_the_project_pass_the_lint() -> None:
    lint = script("lint")
    assert lint.problems(lint.compiled(PROTOS), lint.NUMBERS.read_text().splitlines()) == []


def test_a_good_proto_passes_the_lint(tmp_path: Path) -> None:
    assert problems_of(GOOD, tmp_path) == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("package rl4sys.v1;", "package rl4sys.v2;", "expected rl4sys.v1"),
        ("// Its words.", "", "Greeting.text: has no comment"),
        ("// A greeting.", "", "Greeting: has no comment"),
        ("// The rest.", "", "Greeting.rest: has no comment"),
        ("// One way.", "", "Greeting.tone: has no comment"),
        ("// How it sounds.", "", "Tone: has no comment"),
        ("// Not told.", "", "Tone.TONE_UNSPECIFIED: has no comment"),
        ("// Says hello.", "", "Greeter: has no comment"),
        ("NOT_FOUND", "tears", "names no status code"),
        ("string text", "string Text", "Greeting.Text: expected lower_snake"),
        ("TONE_UNSPECIFIED", "TONE_WARM", "expected TONE_UNSPECIFIED"),
        ("TONE_UNSPECIFIED", "UNSPECIFIED", "expected TONE_… in capitals"),
        ("service Greeter", "service greeter", "expected PascalCase"),
    ],
)
def test_each_lint_problem_is_named(before: str, after: str, words: str, tmp_path: Path) -> None:
    assert any(words in problem for problem in problems_of(GOOD.replace(before, after), tmp_path))


def test_a_badly_named_proto_file_is_found(tmp_path: Path) -> None:
    assert any("lower_snake.proto" in problem for problem in problems_of(GOOD, tmp_path, name="Greeting"))


RECORDED = [
    "rl4sys.v1.Greeter - Greet Greeting Greeting",
    "rl4sys.v1.Greeting 1 text string",
    "rl4sys.v1.Greeting 2 warmth uint32",
    "rl4sys.v1.Greeting 3 tone Tone",
    "rl4sys.v1.Tone 0 TONE_UNSPECIFIED value",
]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("string text = 1", "bytes text = 1"),
        ("string text = 1", "string words = 1"),
        ("string text = 1", "string text = 4"),
        ("  // Its words.\n  string text = 1;", "reserved 1;"),
    ],
    ids=["another type", "another name", "another number", "name not reserved"],
)
def test_a_field_number_cannot_be_reused(before: str, after: str, tmp_path: Path) -> None:
    assert problems_of(GOOD, tmp_path, RECORDED) == []
    found = problems_of(GOOD.replace(before, after), tmp_path, RECORDED)
    assert any("Greeting 1 text string: was removed or changed" in problem for problem in found)


def test_a_field_may_be_removed_if_its_number_and_name_are_reserved(tmp_path: Path) -> None:
    without = GOOD.replace("  // Its words.\n  string text = 1;", '  reserved 1;\n  reserved "text";')
    assert problems_of(without, tmp_path, RECORDED) == []


def test_a_new_field_must_be_recorded(tmp_path: Path) -> None:
    assert any("warmth uint32: not recorded" in problem for problem in problems_of(GOOD, tmp_path, RECORDED[:2]))
