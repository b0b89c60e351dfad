# degem and its service. docker build -t degem . ; deploy/compose.yaml runs it beside PostgreSQL and Prometheus.
FROM python:3.12-slim AS build
COPY . /src
RUN python -m venv /opt/degem \
    && PIP_CONSTRAINT=/src/constraints.txt /opt/degem/bin/pip install --no-cache-dir '/src[serve,sql]'

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 degem && mkdir /state && chown degem /state
COPY --from=build /opt/degem /opt/degem
USER degem
ENV PATH=/opt/degem/bin:$PATH
VOLUME /state
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/v2/health/ready', timeout=4)"]
ENTRYPOINT ["degem"]
CMD ["serve", "/model", "--graph", "/graph", "--state", "/state", "--host", "0.0.0.0"]
