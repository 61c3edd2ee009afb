"""The data directory of a training server as files: checked, repaired, backed up and restored, without torch."""
