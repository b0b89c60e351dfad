"""The live page in a real browser: it follows the events, can be walked, and takes no text for markup."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from tests.browser import HOSTILE

from degem import DeGEM, Graph
from degem.client import Client
from degem.serve.access import Access
from degem.serve.app import create_app
from degem.serve.service import Service, Settings
from degem.serve.store import EventStore

pytestmark = pytest.mark.xdist_group("browser")
STRANGE = f"strange {HOSTILE}"
TOKEN = "0123456789abcdef"


@pytest.fixture
def address(served: DeGEM, served_graph: Graph, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a server on loopback and gives its address; it ends with the test."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(*tokens: str) -> str:
        service = Service(served, served_graph, EventStore(f"sqlite:///{tmp_path / 'e.db'}"), tmp_path, Settings())
        app = create_app(service, Access(tokens))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run)
        thread.start()
        servers.append((server, thread))
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join()


@pytest.fixture
def live(address: Callable[..., str], served_graph: Graph) -> str:
    """A server where a strange node and sixty ordinary ones have arrived."""
    url, features = address(), np.asarray(served_graph.features)
    with Client(url) as client:
        for row in range(60):
            client.add_node(f"ordinary {row}", features[row])
            for other in served_graph.adjacency[[row]].indices[:3]:
                client.add_edge(f"ordinary {row}", f"digit {other}")
        client.add_node(STRANGE, 16 - features[7])
        for row in (1, 50, 200):
            client.add_edge(STRANGE, f"digit {row}")
        answer = client.flush()
        assert answer is not None
        client.wait_for(answer["last_event"])
    return url


def until(driver: Any, condition: str, *values: Any) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 30).until(lambda driver: driver.execute_script(f"return {condition}", *values))


def text(driver: Any, selector: str) -> str:
    return driver.find_element("css selector", selector).text


def look_at(driver: Any, node: str) -> None:
    """Search for a node by its id, and wait until it is shown."""
    field = driver.find_element("id", "search")
    field.clear()
    field.send_keys(node, "\n")
    until(driver, "document.getElementById('node').dataset.shown === arguments[0]", node)


def test_the_page_tells_what_arrived_and_goes_on(live: str, opened: Any) -> None:
    driver = opened(live + "/")
    assert "Of the last 61 arrivals" in text(driver, "#share")
    assert "361" in text(driver, "#facts")
    assert "refresh lag" in text(driver, "#facts")
    assert "61 arrivals" in driver.find_element("id", "chart").get_attribute("aria-label")
    assert len(driver.find_elements("css selector", "#chart circle")) == 3
    assert driver.find_elements("css selector", "#chart line.alpha")
    first = driver.find_element("css selector", "#arrivals tbody tr")
    assert first.find_element("css selector", "td.id").text == STRANGE
    assert first.find_elements("css selector", "td")[4].text.startswith("its ")
    with Client(live) as client:
        client.remove_node("ordinary 59")
    until(driver, "document.querySelector('#facts').innerText.includes('360')")
    until(driver, "document.querySelectorAll('#arrivals tr')[2].innerText.includes('no longer there')")


def test_a_neighbourhood_can_be_walked_there_and_back(live: str, opened: Any) -> None:
    driver = opened(live + "/")
    look_at(driver, STRANGE)
    assert "exact" in text(driver, "#about")
    assert len(driver.find_elements("css selector", "#terms .bar")) == 7
    assert len(driver.find_elements("css selector", "#picture g")) == 4
    driver.find_element("css selector", "#picture g[aria-label^='digit 50:']").send_keys("\n")
    until(driver, "document.getElementById('node').dataset.shown === 'digit 50'")
    with Client(live) as client:
        told = client.node("digit 50")
    assert told is not None
    assert len(driver.find_elements("css selector", "#picture g")) == told["degree"] + 1 >= 3
    driver.back()
    until(driver, "document.getElementById('node').dataset.shown === arguments[0]", STRANGE)
    driver.execute_script("depth.value = '2'; depth.dispatchEvent(new Event('change'))")
    until(driver, "document.querySelectorAll('#picture g').length > 4")
    driver.find_element("id", "search").send_keys(" nobody\n")
    until(driver, "document.getElementById('found').textContent === 'There is no such node.'")


def test_text_of_the_user_stays_text_and_the_network_is_not_asked(live: str, opened: Any) -> None:
    driver = opened(live + "/")
    look_at(driver, STRANGE)
    assert driver.title == "degem: arrivals"
    assert driver.execute_script("return document.querySelectorAll('img, main script, main b').length") == 0
    assert text(driver, "#about dd") == STRANGE
    asked = driver.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert asked
    assert all(name.startswith(live + "/v2/") for name in asked)


@pytest.mark.parametrize("width", [360, 1200])
def test_light_dark_and_phones(live: str, opened: Any, width: int) -> None:
    driver = opened(live + "/", width, 800, dark=True)
    look_at(driver, STRANGE)
    background = "return getComputedStyle(document.body).backgroundColor"
    assert max(map(int, driver.execute_script(background)[4:-1].split(","))) < 60
    driver.find_element("id", "theme").click()
    assert min(map(int, driver.execute_script(background)[4:-1].split(","))) > 200
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    driver.execute_script("localStorage.clear()")


def test_a_token_is_asked_for(address: Callable[..., str], opened: Any, browser: Any) -> None:
    driver = opened(address(f"read {TOKEN}") + "/")
    assert "send a token" in text(driver, "#problem")
    driver.find_element("id", "token").send_keys(TOKEN, "\n")
    until(driver, "document.querySelector('#facts').innerText.includes('300')")
    assert not driver.find_element("id", "login").is_displayed()
    assert all("401" in line["message"] for line in browser.get_log("browser"))
