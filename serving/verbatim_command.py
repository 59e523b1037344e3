"""Entry point of the command `verbatim`: checks what it needs, then hands over.

It is here because a package of another project may hide `pipeline`, and then nothing in `pipeline`
could say so. `serving` knows nothing of the command line but its name.
"""

import importlib
import sys

from serving.own_packages import hidden_package

_COMMAND_LINE = "pipeline.commands.main"


def main() -> int:
    """Runs the command line; returns its exit status."""
    if hidden := hidden_package():
        print(f"verbatim: {hidden}", file=sys.stderr)
        return 1
    try:
        status: int = importlib.import_module(_COMMAND_LINE).main()
        return status
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in ("pipeline", "components", "serving", "keras_models"):
            raise
        extra = "request" if sys.argv[1:2] == ["request"] else "pipeline"
        print(
            f"verbatim: the package '{package}' is not installed; this command needs the extra "
            f"'{extra}': pip install 'path/to/verbatim[{extra}]', a checkout of Verbatim.",
            file=sys.stderr,
        )
        return 1
