"""What people see of moves, and what they may ask of them."""
