"""A browser under WebDriver, with nothing but the standard library: headless Chromium through chromedriver."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "wire"))
from patience import TIMEOUT_S, Late, eventually  # noqa: E402

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015",
        "Home": "\ue011", "End": "\ue010", "Shift": "\ue008"}


class Browser:
    def __init__(self, width=1280, height=900, dark=False, language="en-US"):
        self.profile = tempfile.mkdtemp(prefix="browser-", dir=os.environ.get("WORK"))
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            self.base = f"http://127.0.0.1:{self._port()}"
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                         "--disable-background-networking", "--force-device-scale-factor=1", f"--lang={language}",
                         f"--window-size={width},{height}", f"--user-data-dir={self.profile}"]
            if dark:
                arguments.append("--blink-settings=preferredColorScheme=0")
            options = {"args": arguments, "prefs": {"intl.accept_languages": language}}
            limits = {"script": TIMEOUT_S * 1000, "pageLoad": TIMEOUT_S * 1000}  # its own are shorter
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "timeouts": limits,
                      "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
            self.session = eventually(lambda: self._start(wanted), lambda: f"a browser: {self.why}", pause_s=0.5)
        except BaseException:
            self.close()
            raise

    def _start(self, wanted):
        """The session.  The driver waits for its browser for a minute, which may be short on a busy machine."""
        try:
            return self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except RuntimeError as error:
            self.why = error
            return None

    def _port(self):
        for line in self.driver.stdout:
            found = re.search(r"successfully on port (\d+)", line)
            if found:
                return int(found.group(1))
        raise RuntimeError("chromedriver did not start")

    def _call(self, method, path, body=None):
        where = self.base + (f"/session/{self.session}" if self.session else "") + path
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(where, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            kind = Late if value["error"] in ("timeout", "script timeout") else RuntimeError
            raise kind(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def close(self):
        if self.session:
            try:
                self._call("DELETE", "")
            except (Late, RuntimeError, OSError):
                pass
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open(self, address):
        self._call("POST", "/url", {"url": address})

    def address(self):
        return self._call("GET", "/url")

    def run(self, script, *arguments):
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """The script calls its last argument with what it returns."""
        return self._call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        """What the script returns, once that is something."""
        return eventually(lambda: self.run(script, *arguments), f"{script} {arguments}", pause_s=0.05)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def find(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self._call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def choose(self, selector, value):
        self.run("const e = document.querySelector(arguments[0]); e.value = arguments[1];"
                 "e.dispatchEvent(new Event('change', {bubbles: true}))", selector, value)

    def keys(self, *names):
        steps = []
        for name in names:
            for word in name.split("+"):
                steps.append({"type": "keyDown", "value": KEYS.get(word, word)})
            for word in reversed(name.split("+")):
                steps.append({"type": "keyUp", "value": KEYS.get(word, word)})
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": steps}]})

    def mouse(self, *points):
        """Presses at the first point, moves to the others, releases at the last."""
        (x, y), rest = points[0], points[1:]
        steps = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0}]
        steps += [{"type": "pointerMove", "duration": 40, "x": round(x), "y": round(y)} for x, y in rest]
        steps += [{"type": "pointerUp", "button": 0}]
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                                                     "actions": steps}]})

    def hover(self, x, y):
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}]}]})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("GET", "/screenshot")))

    def emulate(self, command, parameters):
        self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, width, height, dark):
        """The page at this size, light or dark."""
        self.emulate("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.emulate("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def requests(self):
        """The addresses that the page has asked for since the last call."""
        found = []
        for entry in self._call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def complaints(self):
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]
