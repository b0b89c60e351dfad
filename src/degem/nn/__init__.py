"""Modules: parameters only."""
