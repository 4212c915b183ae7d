"""Exhibits: tables and figures of a paper as measured, compared with what is printed.

`exhibit` has a plan and its evidence, and `paper` all exhibits of one; `cells`, `judge` and `prose` say what follows from them.
`sections` make blocks of an exhibit or a paper, `pages` are lists of sections, `kinds` and `pictures` draw, `write` knows
blocks alone, `records` and `latex` are for machines and authors. `render` puts them together.
"""
