"""Reports: tables of a paper as measured, compared with what is printed.

`load` reads plans and evidence into the types of `model`; `analysis` makes the numbers, `figures` the pictures; `pages` says
what stands where, in sections that `write` turns into Markdown and HTML. `render` puts them together.
"""
