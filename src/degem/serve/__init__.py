"""A service: nodes and edges come in, scores go out. Parts, in the order in which an event meets them:

``access`` and ``limits`` (who may ask, and how much) → ``app`` (paths) and ``bodies`` → ``events`` (what may be said) →
``store`` (the database) → ``intake`` (what no snapshot has yet) → ``live_graph`` (the graph as events have made it) →
``scoring`` (its ``rows`` and scores) → ``snapshot`` (what readers see, ``provisional`` scores with it); ``service`` has
the one thread that writes.
"""
