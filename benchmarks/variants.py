"""What the rows of tables differ in, by name, as `verbatim run --set` takes it."""

from pipeline.recipes import choices

#: The overrides of each variant.
VARIANTS: dict[str, tuple[str, ...]] = {
    "none": ("model.head=softmax", "model.attention=none", "model.coverage=false"),
    "attention": ("model.head=softmax",),
    "unknown_replacement": ("model.head=softmax", "decoding.replace_unknown=copy"),
    "pointer_generator": ("model.head=pointer_generator",),
    "pointer_softmax": ("model.head=pointer_softmax",),
    "pointer_sentinel": ("model.head=pointer_sentinel",),
    "pointer_network": ("model.head=pointer_network",),
    "joint_copy": ("model.head=joint_copy",),
    "selective_read": ("model.head=joint_copy", "model.selective_read=true"),
    "span_copy": ("model.head=span_copy",),
    "span_copy_start": ("model.head=span_copy", "model.copying_context=start"),
    "lexicon_bias": ("model.head=lexicon_bias", "lexicon.kind=learned"),
    "lexicon_bias_manual": ("model.head=lexicon_bias", "lexicon.kind=manual"),
    "lexicon_bias_hybrid": ("model.head=lexicon_bias", "lexicon.kind=hybrid"),
    "lexicon_linear": ("model.head=lexicon_linear", "lexicon.kind=learned"),
    "lexicon_linear_manual": ("model.head=lexicon_linear", "lexicon.kind=manual"),
    "lexicon_linear_hybrid": ("model.head=lexicon_linear", "lexicon.kind=hybrid"),
    "lexicon_linear_state": (
        "model.head=lexicon_linear",
        "model.lexicon_gate=state",
        "lexicon.kind=learned",
    ),
    "lexicon_copy": ("model.head=lexicon_copy", "lexicon.kind=learned"),
    # What a source word's vector is made of.
    **{composition: (f"model.composition={composition}",) for composition in choices.COMPOSITIONS},
    # Decoding among some words; the first, with more than there are, among all. All have the same
    # trained model.
    **{
        f"shortlist_{size or 'all'}": (
            *("model.head=pointer_generator", "lexicon.kind=learned"),
            f"decoding.shortlist_size={size or 1_000_000}",
        )
        for size in (0, 128, 256, 512, 1024)
    },
    "shortlist_256_or_all": (
        *("model.head=pointer_generator", "lexicon.kind=learned"),
        *("decoding.shortlist_size=256", "decoding.shortlist_confidence=0.4"),
    ),
    # A source without spaces: its true words, its characters, words that are found; and the last
    # with one trick less each.
    "words": ("model.encoder=rnn", "data.source_tokenization="),
    "characters": ("model.encoder=rnn",),
    "segments": ("segmentation.warm_up=kana",),
    "segments_multigrams": ("segmentation.warm_up=multigrams",),
    # The warm-up throughout: nothing is drawn, so one segmentation is enough, and no baseline is
    # needed.
    **{
        name: (
            f"segmentation.warm_up={warm_up}",
            *("segmentation.warm_up_updates=1000000", "segmentation.samples=1"),
            "segmentation.baseline=linear",
        )
        for name, warm_up in (
            ("segments_multigrams_throughout", "multigrams"),
            ("segments_imitating", "kana"),
        )
    },
    "segments_without_short_ways": ("segmentation.residual=false",),
    "segments_without_word_vectors": ("segmentation.word_buckets=0",),
    "segments_without_detachment": ("segmentation.detached=false",),
    "segments_without_warm_up": ("segmentation.warm_up=none",),
    "segments_without_reinforce": ("segmentation.reinforce_weight=0",),
    "segments_without_length_prior": ("segmentation.length_prior_weight=0",),
    "segments_without_normalization": ("segmentation.normalize_rewards=false",),
    "segments_without_novelty": ("segmentation.novelty_weight=0",),
    "segments_without_confidence_penalty": ("segmentation.confidence_penalty=0",),
    "segments_linear_baseline": ("segmentation.baseline=linear",),
}
