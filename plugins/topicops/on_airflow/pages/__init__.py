"""The tabs that Airflow shows for a run: HTML that the server makes from the run's artifacts.

``reading`` and the page modules import no Airflow, so that tests need none; only ``app`` imports the server.
"""
