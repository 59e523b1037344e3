"""A headless Chromium for the tests of pages."""

import asyncio
import contextlib
import json
import pathlib
import shutil
import subprocess
import time

import aiohttp
import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

# Seconds; far more than anything takes.
_PATIENCE = 60


def command(profile, *options):
    """Returns the command line of a headless Chromium whose profile is the folder `profile`."""
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    )
    return [CHROMIUM, *flags, f"--user-data-dir={profile}", *options]


def run(profile, *options, check=False):
    """Runs a headless Chromium to its end; returns the `CompletedProcess`, with output as text."""
    return subprocess.run(
        command(profile, *options), capture_output=True, text=True, timeout=120, check=check
    )


class Browser:
    """A browser with one page, driven by the DevTools protocol. Use it in a `with` statement.

    Args:
        folder: an empty folder, for its profile.

    Attributes:
        complaints: warnings and errors of the page's console, scripts and security policy since
            `open`.
        requests: the addresses that the page asked for since `open`.
    """

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self.complaints, self.requests = [], []
        self._number = 0

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self._loop = asyncio.new_event_loop()
            stack.callback(self._loop.close)
            log = stack.enter_context(open(self._folder / "log", "wb"))
            port = self._folder / "profile" / "DevToolsActivePort"
            process = subprocess.Popen(
                command(port.parent, "--remote-debugging-port=0", "about:blank"),
                stdout=log,
                stderr=log,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            until(lambda: port.exists() and port.read_text().count("\n"), "Chromium does not start")
            session = self._loop.run_until_complete(_session())
            stack.callback(lambda: self._loop.run_until_complete(session.close()))
            self._socket = self._loop.run_until_complete(
                _connect(session, port.read_text().split()[0])
            )
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.send(f"{domain}.enable")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        self._stack.close()

    def send(self, method, **parameters):
        """Sends a command of the DevTools protocol; returns its result."""
        self._number += 1
        return self._loop.run_until_complete(self._send(self._number, method, parameters))

    async def _send(self, number, method, parameters):
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = json.loads((await self._socket.receive(timeout=_PATIENCE)).data)
            if message.get("id") == number:
                assert "error" not in message, (method, message)
                return message["result"]
            self._note(message.get("method"), message.get("params"))

    def _note(self, event, facts):
        if event == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
        elif event == "Log.entryAdded" and facts["entry"]["level"] in ("warning", "error"):
            self.complaints.append(f"{facts['entry']['source']}: {facts['entry']['text']}")
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(facts["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {facts['args']}")

    def open(self, url):
        """Loads a page anew, even where only what follows the # differs."""
        self.send("Page.navigate", url="about:blank")
        until(lambda: self.run("document.URL") == "about:blank", "no blank page")
        self.complaints.clear()
        self.requests.clear()
        self.send("Page.navigate", url=url)
        self.wait_for(f"document.URL === {json.dumps(url)} && document.readyState === 'complete'")

    def run(self, expression):
        """Returns the value of a JavaScript expression, awaited if it is a promise."""
        result = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression):
        """Waits until a JavaScript expression is true."""
        until(
            lambda: self.run(f"Boolean({expression})"),
            f"{expression} does not become true; {self.complaints}",
        )

    def type(self, text):
        """Types a text where the focus is."""
        self.send("Input.insertText", text=text)

    def press(self, key, code, control=False):
        """Presses a key: its name, such as `ArrowRight`, and its Windows code."""
        facts = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": code,
            "modifiers": 2 if control else 0,
        }
        # Enter does what it does to a button by the character that it types.
        down = (
            {"type": "keyDown", "text": "\r"}
            if key == "Enter" and not control
            else {"type": "rawKeyDown"}
        )
        self.send("Input.dispatchKeyEvent", **down, **facts)
        self.send("Input.dispatchKeyEvent", type="keyUp", **facts)

    def point(self, expression):
        """Moves the pointer to the middle of an element, a JavaScript expression; returns where."""
        place = self.run(
            "(element => { element.scrollIntoView({block: 'center'}); "
            "const box = element.getBoundingClientRect(); "
            f"return {{x: box.x + box.width / 2, y: box.y + box.height / 2}} }})({expression})"
        )
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **place)
        return place

    def click(self, expression):
        """Clicks on an element."""
        place = self.point(expression)
        for event in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=event, button="left", clickCount=1, **place)

    def resize(self, width, height, dark=False):
        """Sets the page's width and height in pixels, and light or dark."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])


async def _session():
    return aiohttp.ClientSession()


async def _connect(session, port):
    async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
        (page,) = [target for target in await response.json() if target["type"] == "page"]
    return await session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)


def until(condition, otherwise):
    """Waits until a function returns something true."""
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)
