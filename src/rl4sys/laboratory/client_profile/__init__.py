"""What the client costs the system it is in: reads what a client measured, compares its levels, and draws a page."""

from rl4sys.laboratory.client_profile.plot import plot_profile
from rl4sys.laboratory.client_profile.recording import ProfileFailed, Recording
from rl4sys.laboratory.client_profile.report import LevelReport, ProfileReport, report_on

__all__ = ["LevelReport", "ProfileFailed", "ProfileReport", "Recording", "plot_profile", "report_on"]
