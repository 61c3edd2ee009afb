"""What every algorithm needs: trained networks, batches as tensors, saving, schedules."""

from rl4sys.engine.advantage_batch import AdvantageBatch, advantage_batch, explained_variance, generalized_advantage
from rl4sys.engine.advantage_streams import AdvantageStreams, advantage_streams
from rl4sys.engine.algorithm import (
    ALGORITHMS,
    Algorithm,
    AlgorithmConfig,
    UpdateResult,
    UpdateWork,
    register_algorithm,
    result_of,
    run_update,
    with_default_buffer,
)
from rl4sys.engine.buffer_choice import build_buffer, drawn_rows, pace_of
from rl4sys.engine.imitation import (
    ImitationConfig,
    Imitator,
    IncumbentRows,
    fit_actor_and_critics,
    learning_rate,
)
from rl4sys.engine.lambda_return import lambda_return
from rl4sys.engine.problem import Policies, Problem, UnsuitableActions, Update
from rl4sys.engine.progress import Progress
from rl4sys.engine.schedules import SCHEDULES, FunctionScheduleConfig, ScheduleConfig
from rl4sys.engine.tensor_batch import TensorBatch
from rl4sys.engine.tensor_streams import SequencePlan, TensorStreams, stream_returns
from rl4sys.engine.time_horizon import Horizon, horizon_seconds
from rl4sys.engine.train_state import TrainState

__all__ = [
    "ALGORITHMS",
    "SCHEDULES",
    "AdvantageBatch",
    "AdvantageStreams",
    "Algorithm",
    "AlgorithmConfig",
    "FunctionScheduleConfig",
    "Horizon",
    "ImitationConfig",
    "Imitator",
    "IncumbentRows",
    "Policies",
    "Problem",
    "Progress",
    "ScheduleConfig",
    "SequencePlan",
    "TensorBatch",
    "TensorStreams",
    "TrainState",
    "UnsuitableActions",
    "Update",
    "UpdateResult",
    "UpdateWork",
    "advantage_batch",
    "advantage_streams",
    "build_buffer",
    "drawn_rows",
    "explained_variance",
    "fit_actor_and_critics",
    "generalized_advantage",
    "horizon_seconds",
    "lambda_return",
    "learning_rate",
    "pace_of",
    "register_algorithm",
    "result_of",
    "run_update",
    "stream_returns",
    "with_default_buffer",
]
