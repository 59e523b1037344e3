"""Patterns of the files of a corpus: for Python, for RE2, and for people."""

import fnmatch

import hypothesis
from hypothesis import strategies as st

from pipeline.recipes import corpora

CHARACTERS = st.text("ab.*?+[](){}\\^$|-/ é\n", max_size=6)


@hypothesis.given(st.lists(CHARACTERS, min_size=1, max_size=3), CHARACTERS)
@hypothesis.settings(deadline=None, max_examples=200)
def test_python_and_the_graph_choose_the_same_corpus(patterns, file):
    from pipeline.features import preprocessing

    patterns = [*patterns, file.replace("a", "*").replace("b", "?")]
    numbers = preprocessing.corpus_numbers([file], patterns).to_list()
    assert numbers == [[corpora.corpus_of(file, patterns)]] and numbers != [[-1]]


@hypothesis.given(st.text("ab.*?-/ é", max_size=6), st.text("ab.-/ é", max_size=6))
def test_stars_and_question_marks_are_those_of_a_shell(pattern, file):
    matches = corpora.corpus_of(file, [pattern]) == 0
    assert matches == fnmatch.fnmatchcase(file, pattern)


def test_the_first_pattern_wins():
    patterns = ["news*", "*.tsv", "*"]
    files = ("news.tsv", "crawl.tsv", "sub/crawl.csv", "new.csv")
    assert [corpora.corpus_of(file, patterns) for file in files] == [0, 1, 2, 2]
    assert corpora.corpus_of("news", ["crawl*"]) == -1
