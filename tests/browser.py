"""A real browser to open pages in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HOSTILE = '<b>b</b><script>document.title = "owned"</script><img src=x onerror="document.title=1">&amp;</script>'
BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium that keeps its console."""
    driver_path, chromium = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("chromium-browser")
    if driver_path is None or chromium is None:
        pytest.skip("no Chromium: run scripts/install-chromium (or apt-get install chromium chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*BROWSER_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser: Any) -> Any:
    """Opens a page at a size, waits until it is drawn, and afterwards makes sure that the console stayed silent."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(page: Path | str, width: int = 1200, height: int = 900, *, dark: bool = False) -> Any:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get(page if isinstance(page, str) else page.as_uri())
        WebDriverWait(browser, 30).until(
            lambda driver: driver.execute_script("return document.documentElement.dataset.ready === 'yes'")
        )
        return browser

    browser.get_log("browser")
    yield open_page
    browser.get("about:blank")  # a page that asks its server now and then is to stop before that does
    assert browser.get_log("browser") == []
