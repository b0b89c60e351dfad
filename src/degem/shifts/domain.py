"""The domain shift: graphs of other countries (Twitch)."""

ID_DOMAIN = "twitch-de"
EXPOSURE_DOMAIN = "twitch-en"
OOD_DOMAINS = {"ES": "twitch-es", "FR": "twitch-fr", "RU": "twitch-ru"}
