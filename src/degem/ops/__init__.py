"""Pure functions: no parameters, no state."""
