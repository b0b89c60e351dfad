"""The benchmark: protocols, runner, results store, tables, figures."""
