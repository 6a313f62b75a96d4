"""Commands that start servers on this machine: the local cluster and the demo."""
