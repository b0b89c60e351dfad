"""Hostile inputs of every kind that degem reads: ``python -m fuzz --inputs 10000 --seed 0``; see docs/reliability.md."""
