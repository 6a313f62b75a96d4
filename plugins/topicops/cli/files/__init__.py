"""Commands that read and write spec files alone. They open no connection."""
