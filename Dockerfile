# The application alone, for `docker build -t glyphoxa .`; compose.yaml runs it with a database. See docs/configuration.md.
FROM debian:bookworm-slim AS builder
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv
# The tools have an environment of their own, so that nothing of them is in the one that goes on.
RUN python3 -m venv /opt/tools && python3 -m venv --without-pip /opt/glyphoxa
ENV PATH=/opt/tools/bin:/usr/local/bin:/usr/bin:/bin PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements/build.txt requirements/app.txt requirements/
# As in the Makefile: the lock is the complete list, and what has no wheel is built with the locked back ends.
RUN pip install --no-deps --no-build-isolation --require-hashes -r requirements/build.txt
RUN pip wheel --no-deps --no-build-isolation --require-hashes -w locked -r requirements/app.txt \
 && pip --python /opt/glyphoxa/bin/python install --no-deps --no-index locked/*.whl
COPY . .
RUN pip wheel --no-deps --no-build-isolation -w dist . \
 && pip --python /opt/glyphoxa/bin/python install --no-deps --no-index dist/*.whl \
 && pip --python /opt/glyphoxa/bin/python check

FROM debian:bookworm-slim
# libgomp1 is what the language model's library takes from the system.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates libgomp1 python3 tzdata \
 && rm -rf /var/lib/apt/lists/*
# 1000 is the first account of most machines: it can then read and write a campaign that is mounted.
RUN useradd --uid 1000 --create-home glyphoxa \
 && install --directory --owner=glyphoxa --group=glyphoxa /campaign /data /var/cache/glyphoxa
COPY --from=builder /opt/glyphoxa /opt/glyphoxa
# Models that are fetched are kept in /var/cache/glyphoxa/models.
ENV PATH=/opt/glyphoxa/bin:/usr/local/bin:/usr/bin:/bin GLYPHOXA_DATA=/data XDG_CACHE_HOME=/var/cache
USER glyphoxa
WORKDIR /home/glyphoxa
VOLUME ["/data", "/var/cache/glyphoxa"]
EXPOSE 7860
# The first start fetches 1.2 GB of models before the page answers.
HEALTHCHECK --interval=10s --timeout=5s --retries=6 --start-period=30m \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]
ENTRYPOINT ["glyphoxa"]
CMD ["serve", "--host", "0.0.0.0", "--campaign", "/campaign/campaign.yaml", "--public-url", "http://localhost:7860/"]
