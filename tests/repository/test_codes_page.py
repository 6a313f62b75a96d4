"""Every code is on the page of codes, as the program explains it."""

from fixtures import codes_page


def test_the_page_has_every_code_as_the_program_explains_it() -> None:
    written = codes_page.PAGE.read_text(encoding="utf-8")

    assert written == codes_page.text(), "write it again: PYTHONPATH=plugins:tests python -m fixtures.codes_page"
