# Airflow with topicops; docker-compose.yml builds this image.
FROM apache/airflow:3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

USER airflow
COPY --chown=airflow:root requirements.lock pyproject.toml README.md LICENSE /opt/topicops/
COPY --chown=airflow:root plugins /opt/topicops/plugins
RUN pip install --no-cache-dir uv==0.13.9 \
    && uv pip install --no-cache --require-hashes -r /opt/topicops/requirements.lock \
    && uv pip install --no-cache --no-deps --no-build-isolation /opt/topicops

ENV PYSPARK_PYTHON=/usr/local/bin/python3
