# The operator's image: docker build -t dra-operator:0.3.0 .
# Every package is pinned by hash. The base is a tag; give a digest with --build-arg PYTHON_IMAGE=…@sha256:… to pin it, too.
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim-trixie

# --------------------------------------------------------------- build: packages, and a wheel of our own
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build

# pip installs into the environments from outside, so that none of them holds pip.
COPY requirements-runtime.lock requirements-build.lock ./
RUN ["python3", "-m", "venv", "--without-pip", "/opt/dra-operator"]
RUN ["python3", "-m", "pip", "--python", "/opt/dra-operator/bin/python", "install", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", "requirements-runtime.lock"]
RUN ["python3", "-m", "venv", "--without-pip", "/opt/tools"]
RUN ["python3", "-m", "pip", "--python", "/opt/tools/bin/python", "install", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", "requirements-build.lock"]

# Last, because it changes most.
COPY pyproject.toml README.md LICENSE ./
COPY operator ./operator
RUN ["/opt/tools/bin/hatchling", "build", "-t", "wheel", "-d", "wheels"]
RUN ["python3", "-m", "pip", "--python", "/opt/dra-operator/bin/python", "install", "--no-deps", "--no-index", "--find-links", "wheels", "dra-operator"]

# --------------------------------------------------------------- the image: Python, the packages, the program
FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="dra-operator" \
      org.opencontainers.image.description="Kopf-based operator and control-plane allocator for Kubernetes Dynamic Resource Allocation" \
      org.opencontainers.image.version="0.3.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# Made and read at the same path: an environment knows where it lies.
COPY --from=build /opt/dra-operator /opt/dra-operator
ENV PATH=/opt/dra-operator/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number, so that a kubelet can tell that it is not root.
USER 65532:65532
WORKDIR /
EXPOSE 8080
ENTRYPOINT ["dra-operator"]
CMD ["--help"]
