"""From a connection id to properties of a client, and whether a port answers."""
