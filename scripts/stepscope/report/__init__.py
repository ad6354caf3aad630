"""The report: facts are numbers of a chapter, templates tell of them, the kit makes the pages."""
