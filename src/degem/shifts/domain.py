"""The domain shift: graphs of other countries (Twitch) and of other sources of papers (Citation)."""

ID_DOMAIN = "twitch-de"
EXPOSURE_DOMAIN = "twitch-en"
OOD_DOMAINS = {"ES": "twitch-es", "FR": "twitch-fr", "RU": "twitch-ru"}
CITATION = {name: f"citation-{name}" for name in ("acm", "dblp", "citation")}
