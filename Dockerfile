# Images of the wheels in dist/, the core and all extras, installed from locked requirements alone: docs/how-to/other-pipelines.md.
#   slim: gates with ONNX Runtime.   cuda: full, for NVIDIA GPUs.
#   full: TVM, a linker, and the clients of MLflow and of the hub for the extra deploy.
# python:3.12.14-slim-trixie, the index of all its architectures.
FROM python:3.12.14-slim-trixie@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS base
# git is what a run reads revisions with. Its version is Debian's: with security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home tunegate \
 && install -d -o tunegate -g tunegate /work
ENV PATH=/opt/tunegate/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /work
ENTRYPOINT ["/opt/tunegate/bin/tunegate"]
CMD ["--help"]

FROM base AS linker
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/*

# What is built is copied out of these: no cache and no pip is in an image.
FROM base AS slim-environment
RUN --mount=type=bind,source=requirements,target=/requirements \
    --mount=type=bind,source=plugin/extras,target=/extras \
    --mount=type=bind,source=dist,target=/dist \
    python -m venv --without-pip /opt/tunegate \
 && pip --python /opt/tunegate/bin/python install --no-cache-dir --only-binary :all: --require-hashes --requirement /requirements/run-onnxruntime.lock --requirement /extras/upgrades/requirements.lock \
 && pip --python /opt/tunegate/bin/python install --no-cache-dir --no-index --no-deps /dist/*.whl

FROM slim-environment AS full-environment
RUN --mount=type=bind,source=requirements,target=/requirements \
    --mount=type=bind,source=plugin/extras,target=/extras \
    pip --python /opt/tunegate/bin/python install --no-cache-dir --only-binary :all: --require-hashes --requirement /requirements/run.lock --requirement /extras/deploy/clients.lock

FROM full-environment AS cuda-environment
RUN --mount=type=bind,source=requirements,target=/requirements \
    pip --python /opt/tunegate/bin/python install --no-cache-dir --only-binary :all: --require-hashes --requirement /requirements/gpu.lock

FROM base AS slim
COPY --from=slim-environment /opt/tunegate /opt/tunegate
USER 10001:10001

FROM linker AS full
COPY --from=full-environment /opt/tunegate /opt/tunegate
USER 10001:10001

# The driver comes from the host, by NVIDIA's container toolkit.
FROM linker AS cuda
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=cuda-environment /opt/tunegate /opt/tunegate
USER 10001:10001
