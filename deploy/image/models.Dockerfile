# An image whose root is a model folder: its files are NAME/VERSION/manifest.json and those of each version.
FROM scratch
COPY . /
