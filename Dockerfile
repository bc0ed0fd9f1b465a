# The same image as `cargo xtask image`, for those who have a daemon: one static program, and nothing else.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /loadline
COPY . .
ARG LOADLINE_COMMIT=unknown
RUN cargo build --locked --profile dist --package loadline --bin loadline && cp target/dist/loadline /loadline.bin

FROM scratch
COPY --from=build /loadline.bin /loadline
USER 65532:65532
ENTRYPOINT ["/loadline"]
