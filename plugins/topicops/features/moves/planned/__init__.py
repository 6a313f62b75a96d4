"""Plans of moves that nobody writes in a file: balance, drain and leaders, each by its own command."""
