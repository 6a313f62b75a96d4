# Two images: `docker build .` makes Airflow with topicops, as docker-compose.yml does; `docker build --target cli .` makes
# the commands alone, without Spark, data quality, Airflow and Java.

FROM python:3.13.15-slim-trixie AS cli

# The plan and the audit log name the commit of the files.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*

COPY requirements-cli.lock requirements-uv.txt pyproject.toml README.md LICENSE /opt/topicops/
COPY plugins /opt/topicops/plugins
RUN pip install --no-cache-dir --require-hashes -r /opt/topicops/requirements-uv.txt \
    && uv pip install --system --no-cache --require-hashes -r /opt/topicops/requirements-cli.lock \
    && uv pip install --system --no-cache --no-deps --no-build-isolation /opt/topicops \
    && useradd --create-home topicops

USER topicops
WORKDIR /work
ENTRYPOINT ["topicops"]


# The last one is the one that is built without a target.
# The slim image: the packages of the other one are not those of our lock, and some of them conflict with it.
FROM apache/airflow:slim-3.3.2-python3.13 AS airflow

USER root
# Java of the distribution: 17 in Debian 12, 21 in Debian 13. Spark runs on both.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/*

USER airflow
COPY --chown=airflow:root requirements-image.lock requirements-uv.txt pyproject.toml README.md LICENSE /opt/topicops/
COPY --chown=airflow:root plugins /opt/topicops/plugins
RUN pip install --no-cache-dir --require-hashes -r /opt/topicops/requirements-uv.txt \
    && uv pip install --no-cache --require-hashes -r /opt/topicops/requirements-image.lock \
    && uv pip install --no-cache --no-deps --no-build-isolation /opt/topicops

# Spark starts from it with half the work. An image without it works too.
RUN topicops spark archive

# A new volume takes the owner of its folder in the image; without the folder it would be root's.
RUN mkdir -m 0700 /opt/airflow/state

ENV PYSPARK_PYTHON=/usr/local/bin/python3
