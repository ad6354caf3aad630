"""The facts, a module a chapter: quantities and booleans from the tidy tables. No English stands
here."""
