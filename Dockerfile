# The container image: `verbatim` as its entry point, and the TFX image of a Kubeflow pipeline,
# which starts each component as `python -m
# tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor` with its arguments (name the
# image with `verbatim compile RECIPE --image IMAGE`).
#
#   docker build -t verbatim .
#   docker run --rm -v "$PWD/data:/data" -v "$PWD/out:/out" verbatim run localization_en_fr --data
#   /data --output /out
#
# trixie has glibc 2.41; TFX 1.21 needs 2.39.
FROM python:3.12-slim-trixie AS build
# Some packages in the lock come as source only and have C parts.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/verbatim
ENV PATH=/opt/verbatim/bin:$PATH
WORKDIR /src
# The lock first: this layer, the large one, is built again only when it changes. Hashes in the lock
# are checked.
COPY requirements/tfx-1.21.txt requirements/
RUN pip install --no-deps --require-hashes -r requirements/tfx-1.21.txt
COPY . .
RUN pip install --no-deps --no-build-isolation .

FROM python:3.12-slim-trixie
COPY --from=build /opt/verbatim /opt/verbatim
ENV PATH=/opt/verbatim/bin:$PATH \
    PYTHONUNBUFFERED=1
RUN useradd --create-home --uid 1000 verbatim
USER 1000
WORKDIR /home/verbatim
ENTRYPOINT ["verbatim"]
CMD ["--help"]
