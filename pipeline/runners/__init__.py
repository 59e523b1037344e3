"""Runs the pipeline: on this machine, or on Kubeflow."""
