"""The pages in a real browser: nothing on the console, everything answers, no text of the user's becomes markup."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from degem import DeGEM, Graph
from degem.compare import compare
from degem.report import write_comparison, write_report

pytestmark = pytest.mark.xdist_group("browser")
NODE_COLUMN = 1


@pytest.fixture(scope="module")
def page(fitted: DeGEM, hostile_graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    is_ood = hostile_graph.columns["is_ood"]
    write_report(fitted, hostile_graph, path, is_ood=is_ood, time="year", reference=hostile_graph)
    return path


def text(driver: Any, selector: str) -> str:
    return driver.find_element("css selector", selector).text


def move_slider(driver: Any, position: int) -> None:
    driver.execute_script(
        "const slider = document.getElementById('alpha'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input')); slider.dispatchEvent(new Event('change'));",
        position,
    )
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def shown_cells(driver: Any, column: int) -> list[str]:
    """The text of a column, row by row as shown."""
    return driver.execute_script(
        "const rows = document.querySelectorAll('#table tbody tr[data-text]:not([hidden])');"
        "return [...rows].map((row) => row.children[arguments[0]].innerText)",
        column,
    )


def test_every_figure_is_drawn_and_described(opened: Any, page: Path) -> None:
    driver = opened(page)
    figures = driver.find_elements("css selector", "main .figure")
    assert len(figures) == 10
    for figure in figures:
        assert figure.get_attribute("role") == "img"
        assert len(figure.get_attribute("aria-label")) > 20
        assert figure.find_elements("css selector", "svg.main-svg")


def test_the_opening_count_is_the_detectors(opened: Any, page: Path, fitted: DeGEM, hostile_graph: Graph) -> None:
    driver = opened(page)
    assert text(driver, "#flagged") == f"{fitted.predict(hostile_graph).sum():,}"
    assert "α = 5.0" in text(driver, "#alpha-value")


@pytest.mark.parametrize("alpha", [0.02, 0.2])
def test_the_slider_moves_all_that_follows_it(
    opened: Any, page: Path, fitted: DeGEM, hostile_graph: Graph, alpha: float
) -> None:
    driver = opened(page)
    alphas = driver.execute_script("return data.alphas")
    position = int(np.searchsorted(alphas, alpha))
    move_slider(driver, position)
    flags = fitted.predict(hostile_graph, alpha=alphas[position])
    assert text(driver, "#flagged") == f"{flags.sum():,}"
    cells = [cell.text for cell in driver.find_elements("css selector", "#confusion td")]
    is_ood, tested = hostile_graph.columns["is_ood"], hostile_graph.masks["test"]
    assert cells[0] == f"{flags[is_ood].sum():,}"
    assert cells[2] == f"{flags[~is_ood & tested].sum():,}"
    bars = driver.execute_script("return document.querySelectorAll('#groups .figure')[0].data[0].x")
    predicted = fitted.predict_class(hostile_graph)
    assert bars == pytest.approx([flags[predicted == label].mean() for label in np.unique(predicted)])
    line = driver.execute_script("return document.getElementById('histogram').layout.shapes[0].x0")
    scores = fitted.decision_function(hostile_graph)
    assert (scores > line + 1e-5 * abs(line)).sum() <= flags.sum() <= (scores > line - 1e-5 * abs(line)).sum()


def test_the_slider_follows_the_keyboard(opened: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = opened(page)
    before = int(text(driver, "#flagged").replace(",", ""))
    slider = driver.find_element("id", "alpha")
    slider.send_keys(Keys.END)
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert int(text(driver, "#flagged").replace(",", "")) > before
    assert "50.00" in slider.get_attribute("aria-valuetext")
    slider.send_keys(Keys.HOME)
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert text(driver, "#flagged") == "0"
    assert "too few for this rate" in text(driver, "#expected")


def test_columns_sort_both_ways(opened: Any, page: Path) -> None:
    driver = opened(page)
    heads = driver.find_elements("css selector", "#table thead button")
    degree = next(head for head in heads if head.text == "Degree")
    column = heads.index(degree)
    for direction, sign in (("ascending", 1), ("descending", -1)):
        degree.click()
        degrees = [int(cell.replace(",", "")) for cell in shown_cells(driver, column)]
        assert (np.diff(degrees) * sign >= 0).all()
        assert len(set(degrees)) > 1
        assert degree.find_element("xpath", "..").get_attribute("aria-sort") == direction


def test_search_narrows_the_table(opened: Any, page: Path) -> None:
    driver = opened(page)
    ids = shown_cells(driver, NODE_COLUMN)
    assert len(ids) == 100
    said = [row.text for row in driver.find_elements("css selector", "#table tbody tr[data-text]")]
    alone = next(name for name in ids if sum(name in words for words in said) == 1)  # no other row names it
    driver.find_element("id", "search").send_keys(alone)
    assert shown_cells(driver, NODE_COLUMN) == [alone]
    assert text(driver, "#shown").startswith("1 of the 100")


def test_details_say_why(opened: Any, page: Path) -> None:
    driver = opened(page)
    button = driver.find_element("css selector", "#table td.why button")
    button.send_keys("\n")
    assert button.get_attribute("aria-expanded") == "true"
    detail = text(driver, "#table tr.detail:not([hidden])")
    assert "Own columns" in detail
    assert "pixel" in detail
    assert "the wider surroundings" in detail
    assert "near training node digit-" in detail


def test_hovering_over_the_map_names_the_node(opened: Any, page: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    driver = opened(page)
    point = driver.find_elements("css selector", "#map path.point")[2]
    driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", point)
    ActionChains(driver).move_to_element(point).perform()
    shown = WebDriverWait(driver, 10).until(lambda driver: text(driver, "#map .hoverlayer"))
    assert "digit-" in shown
    assert "score" in shown
    assert "degree" in shown


def test_the_map_can_be_coloured(opened: Any, page: Path, fitted: DeGEM, hostile_graph: Graph) -> None:
    driver = opened(page)
    num_predicted, num_classes = len(np.unique(fitted.predict_class(hostile_graph))), len(fitted.classes_)
    for choice, num_colours, num_named in (("class", num_predicted, num_classes), ("flag", 2, 2)):
        driver.find_element("css selector", f"input[name=colour][value={choice}]").click()
        colours = driver.execute_script("return document.getElementById('map').data[0].marker.color")
        assert len(set(colours)) == num_colours
        assert len(driver.find_elements("css selector", "#map-legend li")) == num_named


def test_dark_follows_the_system_and_the_button(opened: Any, page: Path) -> None:
    driver = opened(page, dark=True)
    background = "return getComputedStyle(document.body).backgroundColor"
    ink = "return document.getElementById('p-values').layout.font.color"
    dark, dark_ink = driver.execute_script(background), driver.execute_script(ink)
    assert max(map(int, dark[4:-1].split(","))) < 60
    driver.find_element("id", "theme").click()
    assert min(map(int, driver.execute_script(background)[4:-1].split(","))) > 200
    assert driver.execute_script(ink) != dark_ink
    driver.execute_script("localStorage.clear()")


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_sticks_out_on_a_phone(opened: Any, page: Path, width: int) -> None:
    driver = opened(page, width, 760)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    for figure in driver.find_elements("css selector", "main .figure"):
        drawn = figure.find_element("css selector", "svg.main-svg")
        assert drawn.rect["width"] <= figure.rect["width"] + 1
        assert figure.rect["x"] + figure.rect["width"] <= width


def test_text_of_the_user_stays_text(opened: Any, page: Path) -> None:
    driver = opened(page)
    driver.find_element("css selector", "input[name=colour][value=class]").click()
    for button in driver.find_elements("css selector", "#table td.why button")[:4]:
        driver.execute_script("arguments[0].click()", button)
    assert driver.title == "Which nodes not to trust"
    assert driver.execute_script("return document.querySelectorAll('img, main script').length") == 0
    ids = shown_cells(driver, NODE_COLUMN)
    assert any("<script>document.title" in node_id and "&amp;</script>" in node_id for node_id in ids)
    ticks = driver.execute_script("return document.querySelector('#groups .ytick text').textContent")
    assert ticks.startswith("<b>b</b><script>")


def test_the_page_asks_nothing_of_the_network(opened: Any, page: Path) -> None:
    driver = opened(page)
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize(("p_value", "answer"), [(0.9, "No sign of drift."), (0.001, "Yes, the graph has drifted.")])
def test_the_comparison_says_yes_and_no(
    opened: Any, fitted: DeGEM, hostile_graph: Graph, tmp_path: Path, p_value: float, answer: str
) -> None:
    found = compare(fitted, hostile_graph, hostile_graph.subgraph(np.arange(300)))
    tests = tuple(dataclasses.replace(test, p_value=p_value) for test in found.tests)
    write_comparison(dataclasses.replace(found, tests=tests), tmp_path / "compare.html")
    driver = opened(tmp_path / "compare.html", 390)
    assert text(driver, "#answer") == answer
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
    assert len(driver.find_elements("css selector", "main .figure svg.main-svg")) >= 3
    assert driver.execute_script("return document.querySelectorAll('img, main script').length") == 0
