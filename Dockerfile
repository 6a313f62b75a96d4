# Airflow with topicops; docker-compose.yml builds this image.
FROM apache/airflow:3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

USER airflow
COPY --chown=airflow:root requirements.lock requirements-uv.txt pyproject.toml README.md LICENSE /opt/topicops/
COPY --chown=airflow:root plugins /opt/topicops/plugins
RUN pip install --no-cache-dir --require-hashes -r /opt/topicops/requirements-uv.txt \
    && uv pip install --no-cache --require-hashes -r /opt/topicops/requirements.lock \
    && uv pip install --no-cache --no-deps --no-build-isolation /opt/topicops

# Spark starts from it with half the work. An image without it works too.
RUN topicops local spark archive

# A new volume takes the owner of its folder in the image; without the folder it would be root's.
RUN mkdir -m 0700 /opt/airflow/state

ENV PYSPARK_PYTHON=/usr/local/bin/python3
