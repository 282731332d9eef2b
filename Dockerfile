FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app

# Wheels only: the image needs no compiler and never gets one.
COPY constraints.txt ./
RUN pip install --no-cache-dir --only-binary=:all: --requirement constraints.txt \
    && useradd --uid 10001 --no-create-home --home-dir /data recollect \
    && install --directory --owner=recollect --group=recollect --mode=700 /data /backups \
    && ln --symbolic /data data

COPY config config
COPY memory memory
COPY bot bot

USER recollect
VOLUME /data

# `run` touches this file twice a minute from its event loop (bot/heartbeat.py).
HEALTHCHECK --interval=60s --timeout=5s --start-period=60s --retries=2 \
    CMD test -n "$(find /data/alive -mmin -2)"

ENTRYPOINT ["python", "-m", "bot"]
CMD ["run"]
