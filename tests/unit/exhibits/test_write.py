"""The Markdown and HTML writers, on a page with every kind of block."""

from pathlib import Path
from typing import get_args

import pytest
from html_page import Page

from fedrepro.exhibits.write import blocks as s
from fedrepro.exhibits.write import html, markdown

NUMBER = s.Text("1.50", "big")
GRID = s.Grid(
    "A table",
    ((s.Head(""), s.Head("group", span=2, start=True)), (s.Head("method"), s.Head("one", True), s.Head("two", True))),
    (s.Subheading("apart"), (s.Text("a | b", "code"), s.Box((NUMBER, "below"), best=True, title='"why"'), "<2>")),
)

LIST = s.Bullets((s.Points("first", ("one", "two")), "second"))


@pytest.fixture
def page(tmp_path, monkeypatch) -> s.Document:
    """A page with every kind of block."""
    monkeypatch.chdir(tmp_path)
    Path("reports").mkdir()
    Path("reports/a.svg").write_text('<?xml version="1.0"?><svg width="9pt" height="9pt"><text>inside</text></svg>')
    picture = s.Picture("a.svg", "what it shows", "caption")
    link = (s.Text("own", "strong"), " ", s.Text("page", link="reports/x/table1.page"), " & more")
    blocks = (
        s.Banner((link, s.Points(s.Text("Holds:", "strong"), ("this", "that")), "last"), good=True),
        s.Pairs((("name", ("value", s.Text("bad", "bad"))),)),
        s.SideBySide((s.Section("Left", (s.Paragraph("said", soft=True),)), s.Section("Right", (LIST,)))),
        GRID,
        s.Section("Folded", (s.Pictures((picture,)), s.Commands(("do it",))), True, "3 things"),
    )
    assert {type(one) for one in blocks} | {s.Paragraph, s.Bullets, s.Pictures, s.Commands} == set(get_args(s.Block))
    return s.Document("Title <1>", "subtitle", blocks)


def test_markdown(page):
    """The whole text is compared."""
    assert (
        markdown.write(page, Path("reports"))
        == """# Title <1>

subtitle

> **own** [page](x/table1.md) & more
>
> **Holds:**
> - this
> - that
>
> last

|  |  |
| --- | --- |
| **name** | value<br>bad |

## Left

said

## Right

- first
  - one
  - two
- second

| method | group<br>one | group<br>two |
| --- | ---: | ---: |
| ***apart*** |  |  |
| `a \\| b` | **1.50**<br>below | <2> |

## Folded

<details><summary>3 things</summary>

![what it shows](a.svg)

```
do it
```

</details>
"""
    )


def test_html(page):
    """Tags are closed, text is escaped, and folded sections are <details>."""
    text = html.write(page, Path("reports"))
    found = Page(text)
    assert found.open == []
    for said in (
        "<h1>Title &lt;1&gt;</h1>",
        '<a href="x/table1.html">page</a> &amp; more',
        '<th scope="colgroup" class="group start" colspan="2">group</th>',
        'title="&quot;why&quot;"',
        "&lt;2&gt;",
        "<details>\n<summary><h2>Folded</h2>",
        'aria-label="what it shows"',
        ">inside</text>",
        '<span class="bad">bad</span>',
        "<strong>Holds:</strong>\n<ul>\n<li>this</li>\n<li>that</li>\n</ul>",
        "<li>first\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n</li>\n<li>second</li>",
    ):
        assert said in text, said
    assert ("one", "1.50below") in found.cells
