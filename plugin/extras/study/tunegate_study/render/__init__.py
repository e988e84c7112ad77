"""A study as Markdown and as a page."""
