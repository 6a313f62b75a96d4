"""Take a run back: its changes by the audit log, the edits of files that undo them, and a plan of these."""
