"""Keeps former module paths of classes importable."""

import importlib
import sys
import types

_LEXICON_HEADS = tuple(
    f"keras_models.heads.lexicon_{name}" for name in ("head", "bias", "linear", "copy")
)
_SENTINELS = ("keras_models.heads.pointer_sentinel", "keras_models.heads.pointer_sentinel_window")

#: Each former path, and the modules that now have its names.
FORMER_PATHS = {
    "keras_models.layers.attention": ("keras_models.layers.source_attention",),
    "keras_models.layers.composition": ("keras_models.layers.character_composition",),
    "keras_models.layers.copy_head": ("keras_models.heads.copy_head",),
    "keras_models.layers.copynet": ("keras_models.heads.joint_copy",),
    "keras_models.layers.lexicon": _LEXICON_HEADS,
    "keras_models.layers.pointer_generator": ("keras_models.heads.pointer_generator",),
    "keras_models.layers.pointer_network": ("keras_models.heads.pointer_network",),
    "keras_models.layers.pointer_sentinel": _SENTINELS,
    "keras_models.layers.pointer_softmax": ("keras_models.heads.pointer_softmax",),
    "keras_models.layers.softmax": ("keras_models.heads.softmax_head",),
    "keras_models.layers.span_copy": ("keras_models.heads.span_copy",),
    "keras_models.decoding.search": ("keras_models.decoding.rules",),
    "keras_models.models.body": ("keras_models.models.seq2seq",),
    "keras_models.models.heads": ("keras_models.heads.registry",),
    "keras_models.models.transformer": ("keras_models.models.transformer_seq2seq",),
}


def restore(package):
    """Makes the former modules of a package importable: a package calls it when it is complete."""
    for path, modules in FORMER_PATHS.items():
        parent, _, name = path.rpartition(".")
        if parent == package:
            former = types.ModuleType(path, f"Now {', '.join(modules)}.")
            for module in modules:
                names = vars(importlib.import_module(module))
                vars(former).update({k: v for k, v in names.items() if not k.startswith("__")})
            sys.modules[path] = former
            setattr(sys.modules[parent], name, former)
