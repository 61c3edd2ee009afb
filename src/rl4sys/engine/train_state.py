"""Everything that training changes, for every algorithm: networks, optimizers, targets, generators and schedules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch

from rl4sys.engine.earlier_states import converted, is_earlier
from rl4sys.engine.imitation import ImitationConfig, IncumbentRows
from rl4sys.engine.problem import Policies, Problem
from rl4sys.engine.progress import Progress
from rl4sys.engine.tensor_batch import TransitionTensors
from rl4sys.engine.tensor_streams import SequencePlan, StreamTensors
from rl4sys.experience import Array, Sequences, Transitions
from rl4sys.networks import (
    NETWORKS,
    BatchSplitter,
    Initializer,
    Network,
    NoiseStream,
    Optimizer,
    OptimizerSettings,
    Parameters,
    RankParts,
    TargetCopy,
    TensorMap,
    TrainedScalar,
    UnsuitableNetwork,
    initialize_modules,
    stacked_parameters,
    uniform_fan_in,
)
from rl4sys.policy import TORCH_MODULE, Program, Tensor, layout_of
from rl4sys.state import State, generator_state, require, restore_generator

Scheduled = TypeVar("Scheduled", float, torch.Tensor, torch.Tensor | float)


class TrainState:
    """Owns what an algorithm declares, so that algorithms need neither `state` nor `restore` of their own.

    The network declared first acts: its first tensors are those of the policies' program.
    """

    def __init__(
        self,
        problem: Problem,
        policies: Policies,
        gamma: float = 1.0,
        *,
        memory: bool = False,
        sequences: SequencePlan | None = None,
    ) -> None:
        """`memory`: whether the algorithm trains networks with memory, over streams; others are refused them.

        With `sequences` it trains them, on sequences of replay that become tensors according to this plan.
        """
        self.problem, self.policies = problem, policies
        self._trains_memory = memory or sequences is not None
        self._transitions = TransitionTensors(problem.action, gamma, problem.device)
        self._streams: StreamTensors | None = None
        if sequences is not None:
            self._streams = StreamTensors(sequences, gamma, self._transitions, problem.remembered_action)
        self.optimizers: dict[str, Optimizer] = {}
        self._noise = NoiseStream(problem.torch_generator("samples"))
        self.splitter = BatchSplitter(RankParts(self._noise))
        self._targets: dict[str, Network] = {}
        self._copies: dict[str, TargetCopy] = {}
        self._running: dict[str, torch.Tensor] = {}
        self._generators: dict[str, np.random.Generator] = {}
        self._schedules: dict[str, Callable[[Progress], float]] = {}
        self._zero_layer: tuple[str, Callable[[Progress], bool]] | None = None
        self._progress = Progress()
        self._factors = dict.fromkeys(problem.schedules, 1.0)

    def tensors(self, batch: Any) -> Any:
        """A batch of replay as tensors; any other batch as it is."""
        if isinstance(batch, Transitions):
            return self._transitions(batch)
        return self._streams(batch) if self._streams is not None and isinstance(batch, Sequences) else batch

    def incumbent_rows(
        self, batch: Sequences, plan: ImitationConfig, value: Callable[[TensorMap], torch.Tensor]
    ) -> Iterator[IncumbentRows]:
        """Minibatches of the incumbent's decisions, for all epochs; `value` predicts the value of observations."""
        for _ in range(plan.epochs):
            # Targets follow the critics, which are all that is known after the last decision.
            rows = IncumbentRows.of(batch, self._transitions, value)
            yield from rows.minibatches(plan.minibatch_size, self.permutation(len(rows)))

    def network(
        self,
        name: str,
        program: Program,
        outputs: Sequence[str],
        settings: OptimizerSettings,
        *,
        members: int | None = None,
        frozen: Collection[str] = (),
        shared: Collection[str] = (),
        initialize: Initializer | None = None,
        extra_inputs: Sequence[str] = (),
        target: bool = False,
        squeeze: bool = False,
        fused: bool = False,
    ) -> Network:
        """A network with an optimizer of its own, and a target network if asked for; see `Network`."""
        optimizer = self.optimizer(
            name, [program], settings, members=members, frozen=frozen, shared=shared, initialize=initialize
        )
        # Fused layers are faster than what the compiler makes of plain ones.
        optimizer.is_compiled = optimizer.is_compiled and not fused
        network = Network(
            program, outputs, optimizer, extra_inputs=extra_inputs, target=target, squeeze=squeeze, fused=fused
        )
        if target:
            self._targets[name] = network
        return network

    def optimizer(
        self,
        name: str,
        programs: Sequence[Program],
        settings: OptimizerSettings,
        *,
        members: int | None = None,
        frozen: Collection[str] = (),
        shared: Collection[str] = (),
        initialize: Initializer | None = None,
    ) -> Optimizer:
        """One optimizer for the tensors of all programs, for `Network`s that are trained by one loss.

        `frozen` tensors are set by a schedule and not learned; nor are the statistics of observations, which
        members share. `shared` tensors are frozen, too, and the same for all members.
        """
        if not self._trains_memory:
            for program in programs:
                _require_no_memory(program, self.problem)
        statistics = {
            tensor for program in programs for op in program.ops if op.kind == "standardize" for tensor in op.tensors
        }
        if initialize is None:
            generator = self.problem.torch_generator("init" if not self.optimizers else name)
            initialize = lambda parameters: uniform_fan_in(parameters, generator)  # noqa: E731
        initialize = self._with_modules(initialize, programs, name)
        if members is None:
            parameters = Parameters((tensor for program in programs for tensor in program.tensors), self.problem.device)
            initialize(parameters)
        else:
            same = statistics.union(shared)
            parameters = stacked_parameters(programs[0], members, same, self.problem.device, initialize)
        if unknown := {*frozen, *shared} - parameters.views.keys():
            raise ValueError(f"Network '{name}' has no tensors {sorted(unknown)} to freeze.")
        parameters.freeze(*statistics, *frozen, *shared)
        # Where streams are cut depends on the data, so a loss over them is not compiled.
        is_compiled = self.problem.compile and not any(program.carry for program in programs)
        return self._add(name, Optimizer(parameters, self._chosen(settings), self.splitter, compiled=is_compiled))

    def _with_modules(self, initialize: Initializer, programs: Sequence[Program], name: str) -> Initializer:
        """With the initial weights of modules that are no programs, which draw them themselves."""
        if not any(op.kind == TORCH_MODULE for program in programs for op in program.ops):
            return initialize
        generator = self.problem.torch_generator(f"modules of {name}")

        def initialize_all(parameters: Parameters) -> None:
            initialize(parameters)
            initialize_modules(programs, parameters, generator)

        return initialize_all

    def _chosen(self, settings: OptimizerSettings) -> OptimizerSettings:
        """With the optimizer that the user chose, if any."""
        return settings if self.problem.optimizer is None else replace(settings, rule=self.problem.optimizer)

    def scalar(self, name: str, value: float, settings: OptimizerSettings | None) -> TrainedScalar:
        """One trained number; without settings it stays constant."""
        parameters = Parameters([Tensor(name, ())], self.problem.device)
        parameters.set(name, torch.tensor(value))
        optimizer = Optimizer(parameters, self._chosen(settings or OptimizerSettings(0.0)), self.splitter)
        return TrainedScalar(name, optimizer if settings is None else self._add(name, optimizer))

    def target_copy(self, name: str, source: Parameters, tensors: Sequence[Tensor]) -> TargetCopy:
        """A slow copy of some tensors, for a network that shares its optimizer with others."""
        self._copies[f"{name}.target"] = copy = TargetCopy(source, tensors)
        return copy

    def running(self, name: str, *shape: int) -> torch.Tensor:
        """A running statistic, zeros at first, that is saved with everything else; update it in place."""
        return self._running.setdefault(name, torch.zeros(shape, device=self.problem.device))

    def _add(self, name: str, optimizer: Optimizer) -> Optimizer:
        if name in self.optimizers:
            raise ValueError(f"Two networks are named '{name}'; give each a name of its own.")
        self.optimizers[name] = optimizer
        return optimizer

    def generator(self, name: str) -> np.random.Generator:
        """A numpy generator that is saved with everything else; ask for it in the algorithm's constructor."""
        return self._generators.setdefault(name, self.problem.seeds.generator(name))

    def _drawing(self) -> torch.Generator:
        """The generator to draw from now, which depends on the part of the batch if there are several ranks."""
        return self._noise.main if self.splitter.ranks.count == 1 else self._noise.generator

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal noise, drawn on the CPU, so that it is equal on every device."""
        return torch.randn(shape, generator=self._drawing()).to(self.problem.device)

    def random(self, *shape: int) -> torch.Tensor:
        """Uniform noise in [0, 1)."""
        return torch.rand(shape, generator=self._drawing()).to(self.problem.device)

    def uniform(self, *shape: int) -> torch.Tensor:
        """Uniform noise in [−1, 1]."""
        return torch.rand(shape, generator=self._drawing()).mul_(2.0).sub_(1.0).to(self.problem.device)

    def permutation(self, size: int) -> torch.Tensor:
        """The numbers below `size` in random order."""
        return torch.randperm(size, generator=self._drawing()).to(self.problem.device)

    def schedule(self, tensor: str, value: Callable[[Progress], float]) -> None:
        """Set a frozen tensor of the policy, such as ε, from the progress of the run. It travels with the weights."""
        if tensor not in self._acting.views:
            known = ", ".join(self._acting.views)
            raise ValueError(f"The acting network has no tensor '{tensor}' to schedule; it has {known}.")
        self._schedules[tensor] = value
        self.advance(self._progress)

    def zero_layer(self, layer: str, is_zero: Callable[[Progress], bool]) -> None:
        """Publish a layer of the policy as zeros while this holds: all allowed actions are then equally likely."""
        self._zero_layer = layer, is_zero

    def scheduled(self, setting: str, value: Scheduled) -> Scheduled:
        """The value of a setting at this point of the run: multiplied by the factor of its schedule, if it has one."""
        return value * self._factors[setting] if setting in self._factors else value

    @property
    def schedule_factors(self) -> dict[str, float]:
        """By what each setting with a schedule is multiplied at this point of the run."""
        return dict(self._factors)

    def advance(self, progress: Progress) -> None:
        """Apply all schedules and anneal learning rates."""
        self._progress = progress
        self._factors = {name: each.factor(progress) for name, each in self.problem.schedules.items()}
        for optimizer in self.optimizers.values():
            # Other learning rates follow that of the actor, unless they have a schedule of their own.
            own = optimizer.settings.lr_setting
            setting = own if own in self._factors else "lr"
            if setting in self._factors:
                optimizer.lr = self.scheduled(setting, optimizer.settings.lr)
            else:
                optimizer.anneal(progress.fraction)
        for tensor, value in self._schedules.items():
            self._acting.set(tensor, torch.tensor(value(progress)))

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, in all networks and targets."""
        for _, parameters in self.parameters():
            if f"{name}.mean" in parameters.views:
                parameters.set(f"{name}.mean", torch.from_numpy(mean))
                parameters.set(f"{name}.scale", torch.from_numpy(scale))

    def standardization(self) -> dict[str, tuple[Array, Array]]:
        """The mean and 1 / standard deviation of each observation that the policy standardizes."""
        views = {name: view.detach().cpu().numpy().copy() for name, view in self._acting.views.items()}
        statistics = [op.tensors for op in self.policies.explore.program.ops if op.kind == "standardize"]
        return {mean.removesuffix(".mean"): (views[mean], views[scale]) for mean, scale in statistics}

    def install(self, flat: Array) -> None:
        """Act with these weights: the acting network takes them and its target, too; its optimizer starts over."""
        name, optimizer = next(iter(self.optimizers.items()))
        for owner, parameters in self.parameters():
            if owner in (name, f"{name}.target"):
                parameters.flat[: len(flat)].copy_(torch.from_numpy(np.array(flat)))
        optimizer.start_over()

    def parameters(self) -> Iterator[tuple[str, Parameters]]:
        """All parameters by the name of their network; those of targets end in `.target`."""
        for name, optimizer in self.optimizers.items():
            yield name, optimizer.parameters
            network = self._targets.get(name)
            if network is not None and network.target_parameters is not None:
                yield f"{name}.target", network.target_parameters
        for name, copy in self._copies.items():
            yield name, copy.parameters

    @property
    def _acting(self) -> Parameters:
        return next(iter(self.optimizers.values())).parameters

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy; everything else stays here."""
        layout = layout_of(self.policies.explore.program)
        flat = self._acting.flat[: layout.size].cpu().numpy().copy()
        if self._zero_layer is not None and self._zero_layer[1](self._progress):
            views = layout.views(flat)
            for part in ("weight", "bias"):
                views[f"{self._zero_layer[0]}.{part}"].fill(0.0)
        return flat

    def state(self) -> State:
        """Everything that the next update depends on."""
        return {
            "optimizers": {name: optimizer.state() for name, optimizer in self.optimizers.items()},
            "targets": {
                name: parameters.flat.cpu().numpy().copy()
                for name, parameters in self.parameters()
                if name.endswith(".target")
            },
            "generators": {name: generator_state(generator) for name, generator in self._generators.items()},
            "noise": self._noise.main.get_state().numpy().copy(),
        } | ({"running": self._running_state()} if self._running else {})

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        if is_earlier(state):
            state = converted(state, list(self.optimizers), self._noise.main.get_state().numpy())
        require(state, "optimizers", "targets", "generators", "noise", *(["running"] if self._running else []))
        require(state["optimizers"], *self.optimizers)
        for name, optimizer in self.optimizers.items():
            optimizer.restore(state["optimizers"][name])
        targets = {name: parameters for name, parameters in self.parameters() if name.endswith(".target")}
        require(state["targets"], *targets)
        for name, parameters in targets.items():
            parameters.flat.copy_(torch.from_numpy(state["targets"][name]))
        require(state["generators"], *self._generators)
        for name, generator in self._generators.items():
            restore_generator(generator, state["generators"][name])
        self._noise.main.set_state(torch.from_numpy(state["noise"]))
        if self._running:
            require(state["running"], *self._running)
        for name, values in self._running.items():
            values.copy_(torch.from_numpy(np.array(state["running"][name])))

    def _running_state(self) -> State:
        return {name: values.cpu().numpy().copy() for name, values in self._running.items()}


def _require_no_memory(program: Program, problem: Problem) -> None:
    """Refuse memory: these algorithms learn from single steps and would train it wrongly."""
    if program.carry:
        owner = program.carry[0].name.partition(".")[0]
        network = problem.networks.critic if owner == "critic" else problem.networks.actor
        kind = NETWORKS.name_of(network)
        raise UnsuitableNetwork(
            f"{problem.algorithm} cannot train a network with memory (network.{owner}.type={kind}); "
            f"use algorithm.name=ppo, dqn or sac, or network.{owner}.type=mlp."
        )
