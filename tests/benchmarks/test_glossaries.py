"""The benchmark of glossaries chooses terms that its references allow."""

import pytest

from benchmarks.glossaries import term_of

TRANSLATIONS = {"page": "page", "delete": "supprimer", "file": "fichier", "the": "la", "all": "x y"}


@pytest.mark.parametrize(
    ("source", "reference", "term"),
    [
        ("Delete the files", "Supprimer les fichiers", ("delete", "supprimer")),
        ("Remove the file", "Retirer le fichier", ("file", "fichier")),
        # Not in the reference, there twice, too short, in a placeholder.
        ("Remove the file", "Retirer les données", None),
        ("Remove the file", "Le fichier : retirer le fichier", None),
        ("Open the", "Ouvrir la", None),
        ("Remove %(file)s", "Retirer fichier", None),
        ("", "", None),
    ],
)
def test_the_term_of_a_sentence(source, reference, term):
    assert term_of(source, reference, TRANSLATIONS) == term


def test_the_same_text_has_the_same_term():
    found = {term_of("delete file page", "supprimer fichier page", TRANSLATIONS) for _ in range(3)}
    assert len(found) == 1
