# The server of docs/serve.md. Build it in the checkout: docker build -t dbt-hudi .
FROM python:3.12-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*

# what stores need besides, such as --build-arg EXTRAS=[s3]
ARG EXTRAS=""
RUN --mount=type=bind,target=/checkout,rw \
    pip install --no-cache-dir -c /checkout/constraints-spark4.txt "/checkout${EXTRAS}"

# volumes that are made at these places get their owner
RUN useradd --uid 10001 --create-home hudi \
 && install -d -o hudi -g hudi -m 0750 /warehouse /users
USER 10001
WORKDIR /home/hudi
VOLUME ["/warehouse", "/users"]

EXPOSE 10000
STOPSIGNAL SIGTERM
# With --tls in the command: https, and a context that knows the certificate
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:10000/healthz', timeout=4)"]
ENTRYPOINT ["dbt-hudi", "serve"]
CMD ["--host", "0.0.0.0", "--warehouse", "/warehouse", "--auth", "/users/users"]
