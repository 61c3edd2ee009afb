"""Clusters: files for clouds, Kubernetes and SLURM, the commands that use them, and trials as SLURM jobs.

Nothing here imports ray: its command line is called, as are kubectl, sky and those of SLURM.
"""
