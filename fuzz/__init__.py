"""Hostile inputs of every kind that degem reads: ``python -m fuzz --inputs 10000``; see docs/reliability.md."""
