"""Questions about a cluster and its runs, as commands; nothing is changed."""
