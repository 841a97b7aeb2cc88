# The first command of the README, in a container:
#     docker build -t gem-core . && docker run --rm -v "$PWD/runs:/gem-core/runs" gem-core
FROM python:3.11-slim
RUN pip install --no-cache-dir nox
WORKDIR /gem-core
COPY . .
# Installs everything into the image, so that a run needs no network.
RUN nox -s learn -- --help
ENTRYPOINT ["nox", "-s", "learn", "--"]
