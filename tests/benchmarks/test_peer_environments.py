"""The peers' environments: every version pinned, and what cannot be installed is said."""

import os
import struct
import types

import pytest

from benchmarks.peers import environments, executable_stacks
from benchmarks.peers.decoders import LABELS, PROGRAMS


@pytest.mark.parametrize("peer", environments.PEERS)
def test_every_version_of_a_peer_is_pinned(peer):
    lines = (environments.REQUIREMENTS / f"{peer}.txt").read_text().splitlines()
    assert lines and all("==" in line for line in lines)


def test_a_peer_that_was_not_installed_is_named(tmp_path):
    with pytest.raises(SystemExit, match="environments --peers opennmt_py"):
        environments.interpreter("opennmt_py", tmp_path)


def test_what_cannot_be_installed_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "find_uv", lambda: None)
    failed = types.SimpleNamespace(returncode=1, stdout="no matching distribution\n")
    monkeypatch.setattr(environments.subprocess, "run", lambda *arguments, **options: failed)
    assert environments.make("opennmt_py", tmp_path) == "no matching distribution"


def test_what_cannot_be_installed_is_left_out_and_said(tmp_path, monkeypatch):
    answers = {"opennmt_tf": (1, "Resolving\nNo solution found: no wheel\n")}

    def run(command, **options):
        peer = next((one for one in answers if any(one in word for word in command)), None)
        status, text = answers.get(peer, (0, ""))
        return types.SimpleNamespace(returncode=status, stdout=text)

    monkeypatch.setattr(environments.subprocess, "run", run)
    for peer in ("opennmt_py", "opennmt_tf"):
        environments.make(peer, tmp_path)
    needed = {name: PROGRAMS[name].environment for name in ("ours", "opennmt_py", "opennmt_tf")}
    reasons = environments.left_out(needed, tmp_path)
    assert reasons == {"opennmt_tf": "No solution found: no wheel"}
    assert environments.note(LABELS, reasons) == [
        "Left out, because its installation failed here (No solution found: no wheel): "
        "OpenNMT-tf 2.32, no copying."
    ]
    # Tried again with success.
    answers.clear()
    environments.make("opennmt_tf", tmp_path)
    assert environments.left_out(needed, tmp_path) == {}


def library(path, stack_flags, headers=3):
    """Writes the headers of a 64-bit shared library, the last of which is its stack's."""
    start = struct.pack("<16s16xQ14xHH6x", b"\x7fELF\x02\x01\x01", 64, 56, headers)
    kinds = [(1, 5)] * (headers - 1) + [(0x6474E551, stack_flags)]
    path.write_bytes(start + b"".join(struct.pack("<II48x", *kind) for kind in kinds) + b"code")


def test_a_library_asks_for_no_executable_stack(tmp_path):
    marked, plain = tmp_path / "lib" / "a.so.1", tmp_path / "b.so"
    marked.parent.mkdir()
    library(marked, 7)
    library(plain, 6)
    (tmp_path / "c.so").write_text("no library")
    cached = tmp_path / "cache"
    os.link(marked, cached)
    before = cached.read_bytes()
    assert executable_stacks.clear(tmp_path) == [marked]
    library(expected := tmp_path / "expected", 6)
    assert marked.read_bytes() == expected.read_bytes()
    # An installer's cache shares its files.
    assert cached.read_bytes() == before
    assert executable_stacks.clear(tmp_path) == []
