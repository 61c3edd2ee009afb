"""Modules under the paths that programs for the original RL4Sys import: `rl4sys.common`, `rl4sys.utils`, …

This directory is part of the search paths of `rl4sys` and `rl4sys.server`, so `rl4sys.common.action` is
`original/common/action.py`. Nothing else in the package imports from here.
"""
