"""What to say when work on an engine has failed."""

import re

import grpc

# The first traceback of a worker's process, in the words of an engine.
_RAISED_IN_WORKER = re.compile(
    r"SDK harness.*Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*"
    r"(?P<module>(?:\w+\.)*)(?P<kind>\w+): (?P<words>.*?)(?: \[while running .*)?$",
    re.MULTILINE,
)
_OWN_MODULES = ("pipeline.", "components.")


def sentence(failed: str, error: Exception, again: str, log: str = "") -> str | None:
    """Returns a message for people if the engine or one of its workers failed, else nothing.

    Args:
        failed: what failed, such as a component.
        error: what Beam raised.
        again: what to do next, as the end of a sentence.
        log: a sentence that names the log, after errors of ours, which say what to do.
    """
    if isinstance(error, (grpc.RpcError, grpc.FutureTimeoutError)):
        # Only Beam's job server is asked by gRPC while the engine works.
        return (
            f"{failed} failed because the job server of the engine has ended or cannot be reached: "
            f"start it and {again}"
        )
    raised = _RAISED_IN_WORKER.search(str(error))
    if not raised:
        return None
    words = raised["words"].rstrip(".")
    if raised["module"].startswith(_OWN_MODULES):
        return f"{failed} failed: {words}. {log}".rstrip()
    return f"{failed} failed in a worker of the engine ({raised['kind']}: {words}): {again}"
