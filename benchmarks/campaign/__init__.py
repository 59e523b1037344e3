"""Campaigns: queues of runs that a TOML file lists, each resumable, with results as JSON."""
