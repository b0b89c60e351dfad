"""The pictures of docs/images: the demo's report in a headless Chromium, ``python scripts/screenshots.py``."""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from degem import DeGEM
from degem.compare import compare
from degem.data.demo import digits_graph
from degem.report import write_comparison, write_report

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
)


def main() -> None:
    """Write the pages, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        report, comparison = Path(folder) / "report.html", Path(folder) / "compare.html"
        write_pages(report, comparison)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            IMAGES.mkdir(parents=True, exist_ok=True)
            why = (
                "document.querySelector('td.why button').click(); document.querySelector('input[value=flag]').click();"
            )
            take(driver, report, "report.png", 1100, 1330)
            take(driver, report, "report-dark.png", 1100, 760, scroll="#truth-section", first=why + "theme.click();")
            take(driver, report, "report-phone.png", 390, 1000)
            take(driver, report, "explanation.png", 1100, 480, scroll="#table", first=why)
            take(driver, comparison, "compare.png", 1100, 760)
        finally:
            driver.quit()


def write_pages(report: Path, comparison: Path) -> None:
    """The report of the digits, and a comparison of ID test nodes with a window that holds OOD nodes."""
    graph = digits_graph()
    names = tuple(f"pixel {index // 8},{index % 8}" for index in range(graph.num_features))
    graph = graph.replace(feature_names=names, node_ids=np.array([f"digit-{row}" for row in range(graph.num_nodes)]))
    detector = DeGEM().fit(graph)
    is_ood, tested = graph.columns["is_ood"], graph.masks["test"]
    write_report(detector, graph, report, is_ood=is_ood, reference=graph)
    chosen = np.random.default_rng(0).random(graph.num_nodes)
    current = graph.subgraph((tested & (chosen < 0.8)) | (is_ood & (chosen < 0.1)))
    write_comparison(compare(detector, graph.subgraph(tested), current), comparison)


def take(
    driver: webdriver.Chrome, page: Path, name: str, width: int, height: int, *, scroll: str = "header", first: str = ""
) -> None:
    """Save what a window of this size shows, after some script, scrolled to an element."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.as_uri())
    ready = "return document.documentElement.dataset.ready === 'yes'"
    WebDriverWait(driver, 60).until(lambda browser: browser.execute_script(ready))
    driver.execute_script(first)
    driver.execute_async_script("setTimeout(arguments[0], 1500)")
    y = driver.execute_script("return document.querySelector(arguments[0]).getBoundingClientRect().y + scrollY", scroll)
    clip = {"x": 0, "y": max(y - 16, 0), "width": width, "height": height, "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (IMAGES / name).write_bytes(base64.b64decode(shot["data"]))
    driver.execute_script("localStorage.clear()")


if __name__ == "__main__":
    main()
