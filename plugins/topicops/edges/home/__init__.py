"""What the program keeps below `$TOPICOPS_HOME`: runs, journals, audit logs, leases, small memory files."""
