"""The laboratory's page in a browser.  page.py CONCLAVE: each check prints a line."""
import json
import os
import re
import subprocess
import sys
import urllib.parse

import checks
import texts
from browser import Browser
from patience import judged, serves

CONCLAVE = sys.argv[1]
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
AT = "const s = conclave.run.stage, d = s.diagram, box = d.canvas.getBoundingClientRect(), trace = d.trace;"


class Page:
    def __init__(self, browser, address):
        self.b, self.base = browser, address

    def open(self, **parts):
        self.b.open("about:blank")
        self.b.open(self.base + "#" + urllib.parse.urlencode(parts))
        self.b.wait("return document.documentElement.dataset.ready")

    def load(self, scenario):
        """In the page that is there, if one is: to load it anew takes longer than most checks."""
        if not self.b.run("return document.documentElement.dataset.ready"):
            return self.open(scenario=scenario)
        self.b.run_async("const [text, done] = arguments; conclave.open(text).then(done)", scenario)

    def hash(self):
        return self.b.run("return conclave.run.trace.report.trace_hash")

    def after(self, act):
        """What the run is after something was done to it."""
        before = self.hash()
        act()
        self.b.wait("return conclave.run.trace.report.trace_hash !== arguments[0]", before)

    def diagram(self, expression):
        """A point of the diagram, in the window."""
        x, y = self.b.run(AT + f"const [x, y] = {expression}; return [box.left + x, box.top + y];")
        return x, y

    def colour(self, expression):
        return self.b.run(AT + f"const [x, y] = {expression}; d.context.getImageData(0, 0, 1, 1);"
                               "return [...d.context.getImageData(Math.round(x * d.ratio), Math.round(y * d.ratio), 1, 1).data].slice(0, 3)")


def scenario(name):
    with open(os.path.join(ROOT, "scenarios", name + ".scenario"), encoding="utf-8") as file:
        return file.read()


def test_a_run_and_its_violation(page):
    b = page.b
    page.load(scenario("quorum-amnesia"))
    assert "Part2 entered while Part1 was inside" in b.text("#verdict"), b.text("#verdict")
    b.click("#first")
    assert b.run("return conclave.run.stage.player.count") == 0
    for _ in range(3):
        b.click("#forward")
    assert b.run("return conclave.run.stage.player.count") == 3
    b.click("#to-violation")
    assert "Part2 enters" in b.text("#now"), b.text("#now")
    assert b.run("return [...document.querySelectorAll('.event.wrong')].some((e) => e.textContent.includes('Part2 enters'))")
    red = "#dc2626"
    assert b.wait("return getComputedStyle(document.documentElement).getPropertyValue('--wrong').trim()") == red
    b.wait("const d = conclave.run.stage.diagram; return !d.pending && d.frames > 2")
    for process in ("Part1", "Part2"):
        colour = page.colour(f"[d.x(11), d.y(trace.number.get('{process}'))]")
        assert colour == [0xDC, 0x26, 0x26], (process, colour)


def test_the_same_run_as_the_program(page):
    text = "algorithm ricart-agrawala\nprocesses 4\nseed 77\nentries 9\nloss 0\n"
    page.load(text)
    told = subprocess.run([CONCLAVE, "sim", "--scenario", "/dev/stdin", "--json"], input=text, capture_output=True, text=True, check=True)
    assert page.hash() == json.loads(told.stdout)["trace_hash"]


def test_a_process_crashes_by_a_click(page):
    b = page.b
    page.load(scenario("ricart-agrawala"))
    b.mouse(page.diagram("[d.x(trace.end * 0.4), d.y(1) + 9]"))
    assert "P1" in b.text(".menu .title")
    page.after(lambda: b.click(".menu button"))
    assert re.search(r"P1 crash", b.text("#changes")), b.text("#changes")
    assert b.run("return conclave.run.trace.entries.some((e) => e.type === 'crash' && e.process === 'P1')")
    assert "P1+crash" in b.address() or "P1%20crash" in b.address(), b.address()
    page.after(lambda: b.click("#undo"))
    assert "P1 crash" not in b.text("#changes")


def test_a_message_is_dragged(page):
    b = page.b
    page.load(scenario("ricart-agrawala"))
    before = b.run("return conclave.run.trace.arrivesAt[0]")
    x, y = page.diagram("[(d.x(trace.sentAt[0]) * 3 + d.x(trace.arrivesAt[0])) / 4, (d.y(trace.fromOf[0]) * 3 + d.y(trace.toOf[0])) / 4]")
    page.after(lambda: b.mouse((x, y), (x + 60, y), (x + 160, y)))
    assert " delay P0 P" in b.text("#changes") and "once" in b.text("#changes"), b.text("#changes")
    assert b.run("return conclave.run.trace.arrivesAt[0]") > before + 1


def test_a_link_is_cut(page):
    b = page.b
    page.load(scenario("ricart-agrawala"))
    b.click("#first")
    x, y = b.run("const n = conclave.run.stage.network, box = n.canvas.getBoundingClientRect(), [a, c] = [n.places[0], n.places[2]];"
                 "n.canvas.scrollIntoView({block: 'center'}); const at = n.canvas.getBoundingClientRect();"
                 "return [at.left + (a[0] + c[0]) / 2, at.top + (a[1] + c[1]) / 2]")
    b.mouse((x, y))
    page.after(lambda: b.click(".menu button"))
    assert "lose P0 P2" in b.text("#changes"), b.text("#changes")
    assert "deadlock" in b.text("#verdict") or "violated" in b.text("#verdict"), b.text("#verdict")


def test_the_address_restores_the_experiment(page):
    b = page.b
    page.load("algorithm bully\nprocesses 5\nseed 3\nat 3ms p5 crash\n")
    b.click("#first")
    for _ in range(4):
        b.click("#forward")
    address = b.wait("return location.hash.includes('step=4') && location.href")
    now, told = page.hash(), b.text("#now")
    b.open("about:blank")
    b.open(address)
    b.wait("return document.documentElement.dataset.ready")
    assert page.hash() == now and b.text("#now") == told
    assert b.run("return document.querySelector('#algorithm').value") == "bully"


def test_a_counterexample_opens(page):
    b = page.b
    page.open(view="check")
    b.wait("return document.querySelector('#check-go')")
    b.click("#check-go")
    b.wait("return document.querySelector('#check-open')")
    assert "exclusion violated after 7 steps" in b.text("#check-verdict")
    b.click("#check-open")
    b.wait("return location.hash.includes('scripted') && !document.querySelector('#view-run').hidden")
    assert "entered while" in b.wait("const t = document.querySelector('#verdict').textContent; return t.includes('entered while') && t")
    b.click("#to-check")
    b.click("#check-fencing")
    b.click("#check-go")
    assert b.wait("const t = document.querySelector('#check-verdict')?.textContent ?? ''; return t.startsWith('Everything holds') && t")
    assert re.search(r"\d+states\d+transitions", b.text("#check-result .figures")), b.text("#check-result .figures")


def test_a_passing_check_is_walked(page):
    b = page.b
    words = ["check", "central-lease", "--processes", "2", "--entries", "1", "--late", "1", "--fencing"]

    def native(steps):
        told = subprocess.run([CONCLAVE, *words, "--walk", steps, "--json"], capture_output=True, text=True, check=True)
        return json.loads(told.stdout)

    def shown(count):
        """After so many steps: what can happen, and how many messages are in flight."""
        b.wait("return document.querySelector('#walk-now')?.textContent === arguments[0]", f"Steps taken: {count}")
        return b.run("return [document.querySelectorAll('#walk-steps button').length, document.querySelectorAll('#walk-flights li').length]")

    page.open(view="check")
    b.wait("return document.querySelector('#check-go')")
    b.click("#check-fencing")
    b.click("#check-go")
    b.wait("return document.querySelector('#check-verdict')?.textContent.startsWith('Everything holds')")
    b.click("#check-walk")
    path = []
    for steps in ("", "1", "1,1", "1,1,1", "1,1,1,1"):
        told = native(steps or "0")
        assert shown(len(path)) == [len(told["steps"]), len(told["flights"])], (steps, told)
        path = steps.split(",") if steps else []
        if len(path) < 4:
            b.keys("Enter")  # the first step has the focus
            path.append("1")
    assert "p1 ← coordinator  GRANT" in b.text("#walk-walked"), b.text("#walk-walked")
    assert "p1inside" in b.text("#walk-processes").replace(" ", ""), b.text("#walk-processes")
    b.click("#walk-back")
    assert shown(3) == [len(native("1,1,1")["steps"]), len(native("1,1,1")["flights"])]
    b.click("#walk-show")
    b.wait("return location.hash.includes('scripted') && !document.querySelector('#view-run').hidden")
    assert b.run("return conclave.run.trace.entries.filter((e) => e.type === 'receive').length") == 1


def test_the_network_shows_queue_and_token(page):
    b = page.b
    drawn = ("const r = conclave.run, n = r.stage.network;"
             "const at = ({x, y}) => [...n.context.getImageData(Math.round(x * n.ratio), Math.round(y * n.ratio), 1, 1).data].slice(0, 3);"
             "const draw = (count) => { n.count = count; n.time = count ? r.trace.timeOf[count - 1] : 0; n.draw(); };")
    page.load("algorithm central\nprocesses 4\nentries 20\n")
    state, chips, colour = b.run(drawn + "const i = r.trace.entries.findIndex((e) => /queue=\\[\\w+, /.test(e.state)); draw(i + 1);"
                                 "return [r.trace.entries[i].state, n.chips.map((c) => n.trace.names[c.at] + ':' + c.name), at({x: n.chips[0].x - 5, y: n.chips[0].y})]")
    assert chips == ["coordinator:" + name for name in re.search(r"queue=\[(.*)\]", state).group(1).split(", ")], (state, chips)
    assert colour == [252, 211, 77], colour  # as whoever waits
    for algorithm in ("token-ring", "suzuki-kasami", "raymond"):
        page.load(f"algorithm {algorithm}\nprocesses 4\nentries 20\n")
        most, held, colour = b.run(drawn + "let most = 0; const held = new Set(); let colour = null;"
                                   "for (let i = 1; i <= r.trace.entries.length; i++) { draw(i); most = Math.max(most, n.tokens.length);"
                                   "  for (const token of n.tokens) { held.add(n.trace.names[token.at]); colour = colour ?? at(token); } }"
                                   "return [most, held.size, colour]")
        assert most == 1 and held > 1, (algorithm, most, held)
        assert colour == [194, 65, 12], (algorithm, colour)


def test_the_source_lights_up(page):
    b = page.b
    page.load(scenario("ricart-agrawala"))
    b.click("#source summary")
    b.wait("return document.querySelector('#source .code div')")
    b.run("const r = conclave.run, i = r.trace.entries.findIndex((e) => e.type === 'receive' && e.message === 'REQUEST'); r.stage.player.to(i + 1)")
    lit = b.wait("const l = [...document.querySelectorAll('#source .lit')].map((e) => e.textContent); return l.length && l.join('\\n')")
    assert "static void on_request" in lit and "e->kind == REQUEST" in lit and "static void release" not in lit, lit


def test_an_algorithm_shows_what_breaks_it(page):
    b = page.b
    page.open(view="algorithms", algorithm="central-lease")
    b.wait("return document.querySelector('[data-scenario=lease-slow-holder]')")
    b.run("document.querySelector('[data-scenario=lease-slow-holder]').click()")
    b.wait("return document.querySelector('#title').textContent.includes('slow holder')")
    assert "violated" in b.wait("const t = document.querySelector('#verdict').textContent; return t.includes('violated') && t")


def test_an_exercise_is_graded(page):
    b = page.b
    b.click("#to-exercises")
    b.wait("return document.querySelector('[data-name=quorum-overlap]')")
    b.run("document.querySelector('[data-name=odds-majority]').click()")
    b.wait("return document.querySelector('#exercise h1')?.textContent.includes('unlikely')")
    b.type("#exercise-answer", "3")
    b.click("#exercise-grade")
    assert "Wrong" in b.wait("return document.querySelector('#exercise-result .wrong-answer')?.textContent")
    b.run("document.querySelector('#exercise-answer').value = '6.93e-6'")
    b.click("#exercise-grade")
    assert b.wait("return document.querySelector('#exercise-result .right-answer')?.textContent")


def test_other_views(page):
    b = page.b
    b.click("#to-odds")
    before = b.wait("return document.querySelector('#odds-figure')?.textContent")
    b.run("const e = document.querySelector('#odds-m'); e.value = 7; e.dispatchEvent(new Event('input'))")
    b.wait("return document.querySelector('#odds-figure').textContent !== arguments[0]", before)
    b.click("#to-timeout")
    assert b.wait("return document.querySelector('#timeout-least')?.textContent").startswith("124.3")
    b.click("#to-compare")
    b.wait("return document.querySelectorAll('#view-compare .table tbody tr').length > 4")
    b.click("#compare-election")
    b.wait("return document.querySelector('#compare-cost .plot') && !document.querySelector('#compare-cost progress')")
    b.click("#to-museum")
    b.wait("return document.querySelector('#exhibit h1')")
    b.click("#to-tour")
    b.click("#tour-next")
    assert "coordinator" in b.wait("return document.querySelector('.tour h3')?.textContent.includes('dies') && document.querySelector('.tour').textContent")


def test_keyboard_only(page):
    b = page.b
    page.open(scenario=scenario("ricart-agrawala"))
    for _ in range(80):
        if b.run("return document.activeElement?.id === 'diagram'"):
            break
        b.keys("Tab")
    else:
        raise AssertionError("the diagram cannot be reached by Tab")
    total = b.run("return conclave.run.trace.entries.length")
    b.keys("Home", "Right", "Right", "Right", "Left")
    assert b.run("return conclave.run.stage.player.count") == 2
    b.keys("End")
    assert b.run("return conclave.run.stage.player.count") == total
    b.keys("Home", *["Right"] * 6, "Down", "Enter")
    assert "P1" in b.wait("return document.querySelector('.menu .title')?.textContent")
    b.keys("Escape")
    assert b.run("return document.activeElement.id === 'diagram' && !document.querySelector('.menu')")
    b.keys("Enter")
    page.after(lambda: b.keys("Enter"))
    assert "P1 crash" in b.text("#changes"), b.text("#changes")
    b.run("document.querySelector('#events').focus()")
    b.keys("Home", "Down")
    assert b.run("return document.querySelector('#events').getAttribute('aria-activedescendant')") == "event1"


def test_both_languages(page):
    b = page.b
    page.open(scenario=scenario("quorum-amnesia"), lang="pt")
    assert "exclusão mútua violada: Part2 entrou enquanto Part1 estava dentro" in b.text("#verdict"), b.text("#verdict")
    assert b.run("return document.documentElement.lang") == "pt" and b.text("#to-run") == "Executar"
    titles = b.run("return [...document.querySelectorAll('#title, #open-scenario option')].map((e) => e.textContent)")
    assert titles.count("Um coordenador esquece a autorização que deu") == 2, titles
    assert b.text("p.summary") == "n coordenadores com fila, dos quais m > n/2 devem autorizar", b.text("p.summary")
    page.open(view="algorithms", algorithm="ricart-agrawala", lang="pt")
    b.wait("return document.querySelector('#view-algorithms .facts')")
    facts = b.text("#view-algorithms .facts")
    assert "completa" in facts and "uma falha bloqueia todos enquanto dura" in facts, facts


def test_every_text_is_there(_):
    texts.every_text_is_there("lab")


def test_names_are_only_text(page):
    b = page.b
    page.open()
    hostile = "<img/src=x/onerror=window.hit=1>"
    page.load(f"title {hostile}\nalgorithm central\nprocesses 3\nentries 3\n")
    assert b.text("#title") == hostile
    page.load(f"algorithm {hostile}\nprocesses 3\n")
    assert "<img" in b.text("#error"), b.text("#error")
    assert not b.run("return window.hit || document.querySelector('img')")


def test_what_is_in_an_address_is_not_believed(page):
    b = page.b
    for strange in ({"lang": "toString", "view": "__proto__", "step": "1e99x"}, {"tour": "1.5", "view": "constructor"}):
        page.open(**strange)
        b.wait("return document.querySelector('#verdict').textContent && !document.querySelector('#view-run').hidden")


def give(b, text, name="run.json"):
    b.run_async("const [text, name, done] = arguments; conclave.run.openFile(new File([text], name)).then(done)", text, name)
    return b.run("const e = document.querySelector('#error'); return e.hidden ? '' : e.textContent")


def test_a_recorded_run(page):
    b, hostile = page.b, "<img src=x onerror=window.hit=1>"
    page.load("algorithm central\nprocesses 2\nentries 2\n")
    told = subprocess.run([CONCLAVE, "sim", "bully", "--trace", "json"], capture_output=True, text=True, check=True)
    recorded = json.loads(told.stdout)
    recorded["title"] = recorded["entries"][0]["state"] = hostile
    assert not give(b, json.dumps(recorded)) and b.text("#title") == hostile
    assert b.run("return conclave.run.trace.entries.length") == len(recorded["entries"])
    assert not b.run("return window.hit || document.querySelector('img')")
    for part, value in {"time_ms": 1e300, "type": "constructor", "process": 7, "index": -1, "fields": {"a": {}}}.items():
        wrong = json.loads(told.stdout)
        wrong["entries"][2][part] = value
        assert f"entries[2].{part}" in give(b, json.dumps(wrong)), part
    assert "too large" in give(b, "#" * (2 << 20), "large.scenario")
    b.click("#undo")
    b.wait("return document.querySelector('#title').textContent === 'central'")


def test_what_can_be_taken_away(page):
    b = page.b
    page.load(scenario("quorum-amnesia"))
    b.run("window.saved = {}; URL.createObjectURL = (blob) => { window.blob = blob; return 'blob:'; };"
          "HTMLAnchorElement.prototype.click = function () { saved[this.download] = window.blob.size; };")
    for kind in ("svg", "png", "mermaid", "graph", "json", "scenario"):
        b.run_async("conclave.run.share(arguments[0]).then(arguments[1])", kind)
    saved = b.run("return saved")
    assert sorted(saved) == ["quorum." + ending for ending in ("json", "md", "network.svg", "png", "scenario", "svg")], saved
    assert all(size > 300 for size in saved.values()), saved


def test_nothing_leaves_the_origin(page):
    asked = page.b.requests()
    strange = [url for url in asked if not url.startswith((page.base, "about:", "data:", "blob:", "chrome:"))]
    assert asked and not strange, strange
    assert not page.b.complaints()


def main():
    lab = subprocess.Popen([CONCLAVE, "lab", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+/", lab.stdout.readline()).group(0)
        serves(urllib.parse.urlsplit(address).netloc)
        with Browser() as browser:
            return checks.run(globals(), Page(browser, address), browser)
    finally:
        lab.terminate()
        lab.wait()
        lab.stdout.close()


with judged(None):
    sys.exit(main())
