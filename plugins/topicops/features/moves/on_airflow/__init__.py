"""The DAG that carries moves on, and what pages show of them."""
