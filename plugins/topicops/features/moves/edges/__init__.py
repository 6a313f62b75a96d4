"""What moves ask of the brokers, and send to them."""
