"""undo: what a run did, by the audit log, and the edits of files that take it back; knows ``model`` and ``steps``."""
