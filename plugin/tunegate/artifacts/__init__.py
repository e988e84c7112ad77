"""The nouns of a run, in the order they come into being. Read these first.

`changes` -> `tasks` -> `plans` -> `outcomes` -> `builds` -> `measurements` -> `verdicts`. A later
file may import an earlier one, never the other way. A type with a `schema` field is one JSON file
under `.tunegate/`, so that a later CI job can go on from it.
"""
