"""Tables of vocabularies that a test lists."""


def vocabulary_tables(folder, *vocabularies):
    """Returns the lookup table of each vocabulary, whose file lies in the folder."""
    from pipeline.features import lookup_tables

    tables = []
    for place, tokens in enumerate(vocabularies):
        path = folder / f"vocabulary_{place}"
        path.write_text("".join(f"{token}\n" for token in tokens))
        tables.append(lookup_tables.vocabulary_table(str(path)))
    return tables
