"""The container's files say what the command understands. No image is built here: none can be fetched."""

import re
import shlex
from pathlib import Path

import yaml
from typer.testing import CliRunner

from degem.cli import app
from degem.serve.access import Access

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_commands_are_those_of_degem():
    help_text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    lines = DOCKERFILE.splitlines()
    of_image = next(yaml.safe_load(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD "))
    for words in (of_image, COMPOSE["services"]["server"]["command"]):
        assert words[:2] == ["serve", "/model"]
        assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[\w-]+", help_text))


def test_what_the_image_is_made_of_is_sent_to_the_builder():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"]
    assert all((ROOT / name).exists() for name in kept)
    used = {"src", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"}
    assert used <= set(kept)
    assert "[serve,sql]" in " ".join(shlex.split(DOCKERFILE.partition("RUN python")[2].partition("FROM")[0]))


def test_tokens_of_the_compose_file_can_be_read():
    lines = COMPOSE["services"]["server"]["environment"]["DEGEM_TOKENS"]
    tokens = re.sub(r"\$\{(\w+):[^}]*\}", r"\1-0123456789abcdef", lines)
    access = Access(tokens.splitlines())
    assert access.scopes_of("ADMIN_TOKEN-0123456789abcdef") == {"read", "write", "admin"}
    scraped = yaml.safe_load(COMPOSE["configs"]["prometheus"]["content"])["scrape_configs"][0]
    assert "READ_TOKEN" in scraped["authorization"]["credentials"]
    assert scraped["static_configs"][0]["targets"] == ["server:8000"]
