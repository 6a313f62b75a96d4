"""The command `audit`: what the audit log holds, and whether it is whole. The loop writes the log."""
