"""Take over the topics that are described in the files of another tool. Opens no connection."""
