"""The commands that write files of people: the first files of a repository, specs and tombstones."""
