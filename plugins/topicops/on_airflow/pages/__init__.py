"""The tabs that Airflow shows of a run: artifacts are read, made into HTML on the server, and shown as they are.

``reading`` and the page modules import no Airflow, so that they are tested without it; ``app`` alone knows the server.
"""
