"""Warnings of metrics that see nothing."""

import pytest

from pipeline.metrics import blind_spots
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions

TEXTS = {
    "hi": "फ़ाइल नहीं खोली जा सकी",
    "zh": "无法打开文件,因为磁盘已经满了",
    "ja": "ディスクがいっぱいのためファイルを開けません",
    "th": "ไม่สามารถเปิดไฟล์ได้",
    "ru": "Не удалось открыть файл",
    "fr": "Impossible d'ouvrir le fichier",
    "en": "The file cannot be opened",
}


def sentences(text, language="en", names=("bleu", "rougeL", "chrf"), **options):
    texts = ScoredTexts([text], [text])
    return blind_spots.blind_spots(names, texts, ScoringOptions(language=language, **options))


@pytest.mark.parametrize("language", TEXTS)
def test_english_rouge_says_that_it_does_not_read_other_scripts(language):
    said = sentences(TEXTS[language], names=("rouge1", "rougeL"))
    if language in ("fr", "en"):
        assert said == []
    else:
        assert len(said) == 1 and said[0].startswith("rouge1, rougeL: ROUGE for English")
        assert "did not see 100%" in said[0]
    assert sentences(TEXTS[language], language, names=("rouge1",)) == []


@pytest.mark.parametrize("language", TEXTS)
def test_bleu_says_that_it_cut_nothing(language):
    said = sentences(TEXTS[language], names=("bleu",))
    assert len(said) == (language in ("zh", "ja", "th"))
    assert sentences(TEXTS[language], language, names=("bleu", "nist")) == []
    assert len(sentences(TEXTS[language], language, names=("ter",))) == len(said)


def test_texts_that_are_cut_are_seen():
    assert sentences("现在 无法 打开 文件", names=("bleu",)) == []
    assert sentences(TEXTS["zh"], names=("bleu",), tokenize="zh") == []
    assert sentences("", names=("bleu", "rougeL")) == []
    assert sentences(TEXTS["zh"], names=("chrf",)) == []
    # A name in another script among English is no blindness.
    assert sentences(f"{TEXTS['en'] * 20} 北京") == []


def test_short_sentences_without_spaces_are_seen_to_be_uncut():
    for text in ("猫坐在垫子上。", "无法打开文件", "保存する前に確認"):
        (said,) = sentences(text, names=("bleu",))
        assert "written without" in said
    # Words that were cut before.
    assert sentences("无法 打开 文件 因为 磁盘", names=("bleu",), tokenization="whitespace") == []


def test_bleu_says_that_no_text_has_four_words():
    (said,) = sentences("नमस्ते दुनिया", names=("bleu", "chrf"))
    assert said.startswith("bleu: no reference has 4 words") and "chrF" in said
    assert sentences("Open the file", names=("chrf",)) == []
    assert sentences("Open the file now", names=("bleu",)) == []
    # With its punctuation a text may have four.
    assert sentences("Open the file.", names=("bleu",)) == []


def test_unknown_words_of_one_system_are_said():
    said = blind_spots.unknown_words(["a b", "c"], ["a <unk>", "[UNK] d"])
    assert said.startswith("The baseline's outputs hold [UNK] or <unk> in 2 of 2 texts")
    assert blind_spots.unknown_words(["<unk>"], ["a"]).startswith("The hypotheses hold")
    assert blind_spots.unknown_words(["a"], ["b"]) == ""
    assert blind_spots.unknown_words(["<unk>"], ["<unk> a"]) == ""
    assert blind_spots.unknown_words(["x<unk>y"], ["a"]) == ""
