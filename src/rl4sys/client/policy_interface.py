"""What a program sees of a policy: how observations are read, actions returned and steps recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.action_adapter import BadAction, action_adapter
from rl4sys.client.candidate_rows import no_such_candidate
from rl4sys.client.observation_reader import ObservationReader
from rl4sys.experience import Array, Arrays
from rl4sys.policy import COUNT, MASK, ActionSpec, ActionStructure, PolicySpec, layout_of, noise_size
from rl4sys.wire import ContractViolation, SegmentFormat


@dataclass(frozen=True, slots=True)
class LocalPolicies:
    """The policies that a client decides with by itself."""

    explore: PolicySpec
    exploit: PolicySpec | None
    mode: ActingMode = ActingMode.EXPLORE

    def __post_init__(self) -> None:
        if self.exploit is not None and layout_of(self.exploit.program).size != layout_of(self.explore.program).size:
            raise ContractViolation("The exploit policy has other weights than the explore policy. Report it.")
        if self.mode is not ActingMode.EXPLORE and self.exploit is None:
            raise ContractViolation(
                f"The server sent no exploit policy, which `mode: {self.mode}` acts with. Upgrade the server, or "
                f"choose `mode: explore`."
            )

    @property
    def acting(self) -> PolicySpec:
        """The policy that decides."""
        return self.explore if self.mode is ActingMode.EXPLORE or self.exploit is None else self.exploit


class PolicyInterface:
    """Everything about acting with a policy except its weights; the same object for all its versions."""

    def __init__(
        self,
        form: SegmentFormat,
        action: ActionSpec,
        policies: LocalPolicies | None = None,
        defaults: Mapping[str, Any] | None = None,
        structure: ActionStructure | None = None,
        on_default: Callable[[], object] = lambda: None,
    ) -> None:
        """`policies` is None if the server decides. `on_default` is called for each observation that needs one of the
        `defaults`."""
        self._policies = policies
        self.form = form
        """The format of its segments."""
        self.action = action
        self.reader = ObservationReader(form.schema.observation, defaults or {}, on_default)
        self.actions = action_adapter(action, structure)
        self.is_plain = structure is None
        """Whether actions are numbers or arrays, without named or nested parts."""
        self.noise_size = 0 if policies is None else noise_size(policies.acting)

    @classmethod
    def of(
        cls,
        explore: PolicySpec,
        exploit: PolicySpec | None,
        mode: ActingMode = ActingMode.EXPLORE,
        defaults: Mapping[str, Any] | None = None,
        structure: ActionStructure | None = None,
        on_default: Callable[[], object] = lambda: None,
    ) -> PolicyInterface:
        """The interface of policies that the client decides with by itself."""
        policies = LocalPolicies(explore, exploit, mode)
        return cls(SegmentFormat.of(policies.acting), explore.action, policies, defaults, structure, on_default)

    def require_allowed(self, observation: Arrays, row: int, action: Array) -> None:
        """Raise `BadAction` for choices that are not there, or that the mask in this row of observations excludes."""
        there = observation.get(COUNT)
        if there is not None and int(action) >= int(there[row, 0]):
            raise no_such_candidate(int(action), int(there[row, 0]))
        mask = observation.get(MASK)
        if mask is None:
            return
        first = 0
        for choice, count in zip(action.ravel().tolist(), self.form.choices, strict=False):
            if not mask[row][first + int(choice)]:
                raise BadAction(f"Got choice {int(choice)}, which the mask excludes. Pass the mask it was taken under.")
            first += count

    @property
    def is_local(self) -> bool:
        """Whether the client decides by itself."""
        return self._policies is not None

    @property
    def policies(self) -> LocalPolicies:
        """The policies of a client that decides by itself."""
        if self._policies is None:
            raise RuntimeError("The server decides for this client, which has no policy of its own.")
        return self._policies
