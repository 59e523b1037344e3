"""`verbatim fetch`, from a server on this machine: no corpus is fetched from the network."""

import fnmatch
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import threading
import zipfile

import pytest

from benchmarks.campaign import plan
from pipeline.commands import main
from pipeline.public_corpora import corpus as corpora
from pipeline.public_corpora import fetching
from pipeline.public_corpora.corpus import Corpus, CorpusError, CorpusFile
from pipeline.recipes import loading

TEXTS = {"plain.tsv": b"a\tb\n", "deep/packed.txt": "é\n".encode(), "deep/zipped.txt": b"in a zip"}


def digest(content):
    return hashlib.sha256(content).hexdigest()


def zipped(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def site():
    """What a server answers by path, its address, and the paths that it was asked for."""
    answers, asked = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            content = answers.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        answers.update(
            {
                "/repo/plain.tsv": TEXTS["plain.tsv"],
                "/repo/packed.txt.gz": gzip.compress(TEXTS["deep/packed.txt"]),
                # Several members have the file's name; its digest says which it is.
                "/repo/all.zip": zipped(
                    {
                        "old/zipped.txt": b"another",
                        "new/zipped.txt": TEXTS["deep/zipped.txt"],
                        "../outside.txt": b"never written",
                    }
                ),
            }
        )
        yield answers, f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def corpus_at(address, **others):
    files = (
        CorpusFile("plain.tsv", digest(TEXTS["plain.tsv"]), "plain.tsv"),
        CorpusFile("deep/packed.txt", digest(TEXTS["deep/packed.txt"]), "packed.txt.gz"),
        CorpusFile("deep/zipped.txt", digest(TEXTS["deep/zipped.txt"]), "all.zip"),
    )
    fields = {"root": f"{address}/repo/", "files": files, **others}
    return Corpus("made", "Made up", "none", "https://example.org", **fields)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_files_are_unpacked_and_checked(site, tmp_path):
    _, address, asked = site
    written = fetching.fetch(corpus_at(address), tmp_path / "data")
    assert contents(tmp_path / "data") == TEXTS
    assert sorted(written) == sorted(TEXTS) and len(asked) == 3


def test_what_is_there_is_kept_and_what_is_missing_comes(site, tmp_path):
    _, address, asked = site
    fetching.fetch(corpus_at(address), tmp_path)
    (tmp_path / "plain.tsv").unlink()
    asked.clear()
    assert fetching.fetch(corpus_at(address), tmp_path) == ["plain.tsv"]
    assert asked == ["/repo/plain.tsv"] and contents(tmp_path) == TEXTS


def test_an_archive_is_fetched_once_for_all_its_files(site, tmp_path):
    answers, address, asked = site
    answers["/repo/all.zip"] = zipped({"x/one.txt": b"1", "two.txt": b"2"})
    files = tuple(
        CorpusFile(f"{name}.txt", digest(text), "all.zip")
        for name, text in (("one", b"1"), ("two", b"2"))
    )
    fetching.fetch(corpus_at(address, files=files), tmp_path)
    assert asked == ["/repo/all.zip"] and contents(tmp_path) == {"one.txt": b"1", "two.txt": b"2"}


def test_another_content_is_refused_and_not_written(site, tmp_path):
    answers, address, _ = site
    answers["/repo/plain.tsv"] = b"<html>moved</html>"
    with pytest.raises(CorpusError, match=r"plain.tsv does not contain plain.tsv as it was .*SHA"):
        fetching.fetch(corpus_at(address), tmp_path)
    assert contents(tmp_path) == {}


def test_a_file_of_ones_own_is_not_overwritten(site, tmp_path):
    _, address, asked = site
    (tmp_path / "plain.tsv").write_text("mine")
    with pytest.raises(CorpusError, match="is not the corpus' own file"):
        fetching.fetch(corpus_at(address), tmp_path)
    assert contents(tmp_path) == {"plain.tsv": b"mine"} and asked == []


@pytest.mark.parametrize("path", ["/repo/all.zip", "/repo/packed.txt.gz"])
def test_half_an_archive(site, tmp_path, path):
    answers, address, _ = site
    answers[path] = answers[path][: len(answers[path]) // 2]
    with pytest.raises(CorpusError, match="is not a complete archive"):
        fetching.fetch(corpus_at(address), tmp_path)


def test_a_server_that_has_it_no_more_or_is_none(site, tmp_path):
    answers, address, _ = site
    del answers["/repo/plain.tsv"]
    with pytest.raises(CorpusError, match="answers 404 Not Found: the file may have moved"):
        fetching.fetch(corpus_at(address), tmp_path)
    with pytest.raises(CorpusError, match=r"does not answer \(.*\): check the network"):
        fetching.fetch(corpus_at("http://127.0.0.1:1"), tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(site, tmp_path):
    _, address, _ = site
    tmp_path.chmod(0o500)
    with pytest.raises(CorpusError, match="cannot be written to"):
        fetching.fetch(corpus_at(address), tmp_path / "data")


def test_a_corpus_that_cannot_be_had_says_how(tmp_path):
    files = (CorpusFile("a.txt", digest(b"a")), CorpusFile("b.txt", digest(b"b")))
    made = corpus_at("http://unused", files=files, how="Buy it.")
    (tmp_path / "a.txt").write_bytes(b"a")
    with pytest.raises(CorpusError, match=r"Buy it\. Missing in .*: b\.txt\."):
        fetching.fetch(made, tmp_path)
    (tmp_path / "b.txt").write_bytes(b"b")
    assert fetching.fetch(made, tmp_path) == []


# The corpora that are known


def test_every_corpus_says_what_it_is_and_where_it_comes_from():
    assert len(corpora.names()) > 10
    for name in corpora.names():
        known = corpora.load(name)
        assert known.title and known.licence and known.page.startswith("https://")
        paths = [file.path for file in known.files]
        assert paths and len(set(paths)) == len(paths)
        for file in known.files:
            assert len(file.sha256) == 64 and set(file.sha256) <= set("0123456789abcdef")
            assert not pathlib.PurePosixPath(file.path).is_absolute() and ".." not in file.path
            assert bool(file.address) != bool(known.how)
            if file.address:
                assert known.address(file).startswith("https://")


def test_a_recipes_corpus_has_the_files_that_the_recipe_reads():
    recipes = [recipe for name in corpora.names() for recipe in corpora.load(name).recipes]
    assert len(recipes) == len(set(recipes)) > 10
    for recipe in recipes:
        data = loading.load_recipe(recipe).data
        paths = {file.path for file in corpora.load(recipe).files}
        for entry in (*data.train_files, *data.test_files):
            for pattern in entry.split(","):
                assert fnmatch.filter(paths, pattern), (recipe, pattern)


def test_a_campaign_reads_the_folder_that_is_fetched():
    tables = [table for campaign in plan.load_all() for table in campaign.tables if table.data]
    assert len(tables) > 10
    for table in tables:
        corpus = table.made_from or table.data
        assert corpora.load(table.recipe).name == corpus, table.name


def test_the_command(tmp_path, monkeypatch, capsys, site):
    _, address, _ = site
    monkeypatch.setattr(corpora, "load", lambda name: corpus_at(address))
    facts = tmp_path / "facts.json"
    target = tmp_path / "corpus"
    assert main.main(["fetch", "made", "--output", str(target), "--json", str(facts)]) == 0
    assert contents(target) == TEXTS and "3 files fetched" in capsys.readouterr().out
    assert json.loads(facts.read_text())["kept"] == 0
    assert main.main(["fetch", "made", "--output", str(target)]) == 0
    assert "0 files fetched, 3 there already" in capsys.readouterr().out


def test_a_corpus_that_nobody_knows(capsys):
    assert main.main(["fetch", "klingon"]) == 1
    assert "no public corpus klingon; these are known: ag_news" in capsys.readouterr().err
