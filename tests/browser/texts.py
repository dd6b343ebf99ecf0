"""The texts of a page: what its sources say, in each language."""
import glob
import os
import re

WEB = os.path.join(os.path.dirname(__file__), "..", "..", "web")


def keys_of(page, language):
    with open(os.path.join(WEB, page, f"texts.{language}.js"), encoding="utf-8") as file:
        return re.findall(r'^  "([^"]+)": "', file.read(), re.M)


def every_text_is_there(page):
    """Whatever the scripts of web/PAGE, and those that pages share, ask for by name; and nothing there is markup."""
    english, portuguese = keys_of(page, "en"), keys_of(page, "pt")
    assert english == portuguese and len(set(english)) == len(english), set(english) ^ set(portuguese)
    for name in glob.glob(os.path.join(WEB, page, "*.js")) + glob.glob(os.path.join(WEB, "shared", "*.js")):
        with open(name, encoding="utf-8") as file:
            source = file.read()
        for key in re.findall(r'\bt\("([^"]+)"[,)]', source):
            assert key in english, f"{name}: {key}"
        for markup in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "createContextualFragment", "srcdoc", "eval("):
            assert markup not in source, (name, markup)
