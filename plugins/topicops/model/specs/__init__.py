"""Files that people write: topics, profiles, environments; where each value is, and what is wrong there."""
