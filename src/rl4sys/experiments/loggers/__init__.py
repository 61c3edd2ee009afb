"""Loggers: where the metrics of a run go besides `metrics.jsonl`, and the registry for loggers of plug-ins."""
