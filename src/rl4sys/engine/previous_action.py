"""The previous action as an input of networks with memory: heads write it, and training knows it from experience."""

from __future__ import annotations

from dataclasses import replace

from rl4sys.policy import ActionSpec, Head, Program, ProgramBuilder, output_size

PREVIOUS, TAKEN = "action.previous", "action.taken"
"""The memory of the action before, and the register that is remembered in it: the action that is taken."""


def previous_action(builder: ProgramBuilder, action: ActionSpec) -> str:
    """The register of the previous action as networks see it, zeros at an episode's start."""
    return builder.memory(PREVIOUS, (output_size(action),), TAKEN)


def remembering(head: Head, program: Program) -> Head:
    """The head; it writes its action where the program remembers it, if it does."""
    if all(memory.next != TAKEN for memory in program.carry):
        return head
    return replace(head, settings={**head.settings, "action": TAKEN})
