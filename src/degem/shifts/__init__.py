"""From a Graph to scenarios with OOD nodes, for benchmarks only. One kind, one file."""
