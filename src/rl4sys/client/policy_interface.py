"""What a program sees of a policy: how observations are read, actions returned and steps recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.action_adapter import action_adapter
from rl4sys.client.observation_reader import ObservationReader
from rl4sys.policy import ActionStructure, PolicySpec, layout_of, noise_size
from rl4sys.wire import ContractViolation, SegmentFormat


class PolicyInterface:
    """Everything about acting with a policy except its weights; the same object for all its versions."""

    def __init__(
        self,
        explore: PolicySpec,
        exploit: PolicySpec | None,
        mode: ActingMode = ActingMode.EXPLORE,
        defaults: Mapping[str, Any] | None = None,
        structure: ActionStructure | None = None,
        on_default: Callable[[], object] = lambda: None,
    ) -> None:
        """`on_default` is called for each observation that needs one of the `defaults`."""
        self.explore, self.exploit = explore, exploit
        if exploit is not None and layout_of(exploit.program).size != layout_of(explore.program).size:
            raise ContractViolation("The exploit policy has other weights than the explore policy. Report it.")
        if mode is not ActingMode.EXPLORE and exploit is None:
            raise ContractViolation(
                f"The server sent no exploit policy, which `mode: {mode}` acts with. Upgrade the server, or choose "
                f"`mode: explore`."
            )
        self.acting = explore if mode is ActingMode.EXPLORE or exploit is None else exploit
        """The policy that decides."""
        self.form = SegmentFormat.of(self.acting)
        """The format of its segments."""
        self.reader = ObservationReader(self.form.schema.observation, defaults or {}, on_default)
        self.actions = action_adapter(explore.action, structure)
        self.noise_size = noise_size(self.acting)
