"""What people write: topics, profiles, environments; where each value stands, and what is wrong there."""
