"""For tools that still call setup.py (Beam's --setup_file, Dataflow workers);
everything is in pyproject.toml.
"""

from setuptools import setup

setup()
