"""A package, so that the cluster of its fixture ends with its last test."""
