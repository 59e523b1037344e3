"""The artifacts of a run, so that those of two runs can be compared."""

import hashlib
import pathlib
from collections.abc import Iterator


def digests(output: pathlib.Path) -> dict[str, str]:
    """Returns a digest of each file of a run's artifacts, and of its answers and metrics.

    Sharded examples count as one set of records, whatever their order and number of shards.
    """
    found = {}
    for folder in sorted((output / "pipeline").glob("*/*/*")):
        component, key = folder.parts[-3:-1]
        if key.startswith(".") or not folder.is_dir():
            continue
        for name, content in _files(folder):
            found[f"{component}/{key}/{name}"] = hashlib.sha256(content).hexdigest()
    for path in (output / "metrics.json", *sorted((output / "outputs").glob("*"))):
        found[str(path.relative_to(output))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _files(folder: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Yields (name, content) of each file, and the sorted records of each folder of shards."""
    import tensorflow as tf

    shards: dict[pathlib.Path, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if path.suffix == ".gz" and "-of-" in path.name:
            shards.setdefault(path.parent, []).append(str(path))
        else:
            yield path.relative_to(folder).as_posix(), path.read_bytes()
    for parent, paths in shards.items():
        records = tf.data.TFRecordDataset(paths, compression_type="GZIP").as_numpy_iterator()
        digest = sorted(hashlib.sha256(record).hexdigest() for record in records)
        yield parent.relative_to(folder).as_posix(), "\n".join(digest).encode()
