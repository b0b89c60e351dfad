"""A service: nodes and edges come in, scores go out. Parts, in the order in which an event meets them:

``access`` and ``limits`` (who may ask, and how much) → ``app`` (paths) → ``events`` (what may be said) → ``store`` (the
database) → ``live_graph`` (the graph as events have made it) → ``scoring`` (its rows and scores) → ``service`` (the one
thread that writes, and what readers see).
"""
