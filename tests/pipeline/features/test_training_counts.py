"""The file of training counts beside an exported model."""

from pipeline.features import training_counts


def test_counts_come_back_from_the_same_bytes_at_any_time(tmp_path):
    counts = {"café": 3, "%s": 1}
    training_counts.write(str(tmp_path), counts)
    assert training_counts.read(str(tmp_path)) == counts
    assert training_counts.read(str(tmp_path / "other")) is None
    # Bytes 4 to 7 of gzip's header are the time.
    assert (tmp_path / training_counts.FILE).read_bytes()[4:8] == bytes(4)
