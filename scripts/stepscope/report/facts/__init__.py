"""The facts, a module a chapter: quantities and claims (booleans) from the tidy tables. No English
stands here.

A chapter's facts are a dataclass whose fields are what it is given (the tables, the machine, the
place), and whose cached properties are what follows from them, each worked out where it is
declared and when a template asks for it. Fields and cached properties stand in facts.json; a plain
property chooses among them, or is a claim about them, and does not. What begins with `_` is for
the module alone.
"""
