from pathlib import Path

from documents import Summary, app, count_words, summarize

from weft.testing import World


def test_500_documents_are_read_once_each_although_the_process_dies(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"{number:03}.md").write_text("three short words")
    world = World(app)
    world.crash(at="documents/~250/count_words", when="after")

    assert world.run(summarize(str(tmp_path))) == Summary(1_500, 500, [])
    assert (tmp_path / "summary.txt").read_text() == "500 documents, 1500 words\n"
    assert len({call.args["path"] for call in world.calls(count_words)}) == 500


def test_a_document_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("one two")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\xfa")
    summary = World(app).run(summarize(str(tmp_path)))

    assert (summary.words, summary.failed) == (2, [str(tmp_path / "bad.md")])
