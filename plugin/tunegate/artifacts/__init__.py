"""The nouns of a run, in the order they are made. Read these first.

`changes` -> `tasks` -> `plans` -> `outcomes` -> `builds` -> `measurements` -> `verdicts`. A later
file may import an earlier one, never the reverse. A type with a `schema` field is one JSON file
under `.tunegate/`, from which a later CI job continues.
"""
