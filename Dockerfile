# Deskhand in a container: `docker compose up`. What it may do to the machine stands in compose.yaml.
FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python -m venv /opt/deskhand
COPY requirements/run.txt requirements/run.txt
RUN /opt/deskhand/bin/pip install --require-hashes -r requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/deskhand/bin/pip install --no-deps . && /opt/deskhand/bin/python -m compileall -q /opt/deskhand/lib

FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 deskhand \
 && install -d -m 0700 -o deskhand -g deskhand /data
COPY --from=build /opt/deskhand /opt/deskhand
ENV PATH=/opt/deskhand/bin:$PATH DESKHAND_HOME=/data DESKHAND_CACHE=/data/cache PYTHONUNBUFFERED=1
USER deskhand
WORKDIR /home/deskhand
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["deskhand", "status", "--quiet"]
ENTRYPOINT ["deskhand"]
CMD ["serve"]
