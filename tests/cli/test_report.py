"""``degem report``: a page where one was asked for, and nothing half-written."""

from __future__ import annotations


def test_a_page_with_truth_and_reference_is_written(run, model, folder, tmp_path) -> None:
    out = tmp_path / "page.html"
    done = run(
        "report", model, folder, "--out", out, "--ood", "strange", "--label-column", "topic", "--reference", folder
    )
    assert done.code == 0, done.err
    assert str(out) in done.out
    text = out.read_text()
    assert "Which nodes of graph not to trust" in text
    assert '"numOod":40' in text


def test_mistakes_are_told_in_one_line_and_leave_no_file(run, model, folder, tmp_path) -> None:
    for words, told in (
        (("--out", tmp_path / "page.pdf"), ".html"),
        (("--out", tmp_path / "page.html", "--time", "month"), "month"),
        (("--out", tmp_path / "page.html", "--ood", "odd"), "odd"),
    ):
        failed = run("report", model, folder, "--label-column", "topic", *words)
        assert failed.code == 2
        assert told in failed.err
        assert failed.err.count("\n") == 1
    assert not list(tmp_path.glob("*page*"))


def test_a_page_is_made_within_a_bounded_memory(run, model, folder, tmp_path, monkeypatch) -> None:
    budgets = []

    def page_writer(detector, graph, path, **options) -> None:
        budgets.append(detector.memory_budget)
        path.write_text("page")

    monkeypatch.setattr("degem.report.write_report", page_writer)
    done = run("report", model, folder, "--out", tmp_path / "page.html", "--label-column", "topic")
    assert done.code == 0, done.err
    assert budgets == [1024.0]
