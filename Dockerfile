# The server, the command line and the shipped models, without a shell or a package manager. `make image` builds it. It
# runs with a read-only root as an unprivileged user.

FROM rust:1.95.0-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /hlorank
# Copied first, so that a change of the sources does not fetch the library again.
COPY deploy/setup-onnxruntime.sh deploy/onnxruntime-requirements.txt deploy/
RUN deploy/setup-onnxruntime.sh target/onnxruntime
COPY . .
RUN make build PROFILE=dist LOCKED=--locked
RUN deploy/image/root.sh /image

FROM scratch
COPY --from=build /image /
ENV HLORANK_LISTEN=0.0.0.0:7070
ENV HLORANK_METRICS_LISTEN=0.0.0.0:7071
ENV HLORANK_MODELS=/models
ENV HLORANK_ONNXRUNTIME=/usr/lib/libonnxruntime.so
ENV HLORANK_LOG_FORMAT=json
# Turns off the telemetry of ONNX Runtime.
ENV ORT_DISABLE_TELEMETRY=1
ENV PATH=/usr/bin
# By number, because Kubernetes cannot check whether a name is root.
USER 65532:65532
EXPOSE 7070 7071
# Calls HLORANK_ENDPOINT, port 7070 of this container by default.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/usr/bin/hlorank", "models"]
ENTRYPOINT ["/usr/bin/hlorank-server"]
