"""Learning on several ranks: mirrored processes that share the lanes and every batch of one run."""

from rl4sys.experiments.ranks.rank_place import RankPlace, RanksMisconfigured

__all__ = ["RankPlace", "RanksMisconfigured"]
