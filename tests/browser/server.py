"""The server's page in a browser, of an ensemble of three.  server.py CONCLAVE [WORD...]: each check prints a line."""
import json
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import urllib.parse

from kazoo.security import make_digest_acl

import checks
import texts
from browser import Browser
from patience import judged, kept_directory
from servers import CONCLAVE, PORT, TIMEOUT_S, TOKEN, Held, base, eventually, host_of, of_the_leader, raw, started, wait_in_vain

HOSTILE = "<img src=x onerror=window.hit=1>"
SCRIPT = "<script>window.hit=1</script>"
PREFIXES = {key.split(".")[0] for key in texts.keys_of("server", "en") if "." in key}
STREAMS_MAX = 16
READY = "return document.documentElement.dataset.ready"
IS_LIVE = "return conclave.stream.live && document.querySelector('#banner').hidden"


class Page:
    def __init__(self, browser, ensemble):
        self.b, self.ensemble = browser, ensemble
        self.home = ensemble.members[0]  # the page of any will do, if a client writes to the same one

    def open(self, member, **parts):
        self.b.open("about:blank")
        self.b.open(base(member) + "#" + urllib.parse.urlencode(parts))
        self.b.wait(READY)

    def tree(self, member, path, **parts):
        """The tree, once that node is shown."""
        self.open(member, view="tree", path=path, **parts)
        self.shown(path)

    def shown(self, path):
        self.b.wait("return conclave.views.tree.node.node?.path === arguments[0] && !!document.querySelector('#stat, #node .error')", path)

    def operator(self):
        self.b.click("#operator")
        self.b.type("#token", TOKEN)
        self.b.click("#use-token")
        self.b.wait("return !document.querySelector('#dialog').open")

    def has_words(self):
        """Nothing is shown by the name of its text, as what has none would be."""
        bare = re.findall(r"\b(?:%s)\.[a-z][\w-]*\b" % "|".join(PREFIXES), self.b.run("return document.body.innerText"))
        assert not bare, bare

    def unharmed(self):
        assert not self.b.run("return window.hit || document.querySelector('img, main script')")


def test_the_ensemble_is_seen(page):
    b = page.b

    def shows_members(leader):
        page.open(leader)
        assert b.text("#title") == f"Server {leader.number}" and b.text("#role") == "leader", b.text("#view-ensemble")
        for member in page.ensemble.members:
            role = "leader" if member is leader else "follower"
            assert b.run("return document.querySelector(`[data-member='${arguments[0]}']`).dataset.role", member.number) == role
            assert member.peer in b.text("#members")
        term = b.text("[data-figure=term] b")
        assert term and b.text("#elections tbody tr").startswith(term), b.text("#elections")
        page.open(page.ensemble.followers()[0])
        assert b.text("#role") == "follower" and f"server {leader.number}" in b.text("#members"), b.text("#members")
    of_the_leader(page.ensemble, shows_members)


def test_the_figures_go_on(page):
    b, home = page.b, page.home
    page.open(home)
    assert b.text("[data-figure=sessions] b") == "0", b.text("#figures")
    zk = page.ensemble.client(home)
    zk.create("/seen", b"x")
    b.wait("return document.querySelector('[data-figure=sessions] b').textContent === '1'")

    def a_curve():
        for _ in range(20):
            zk.get("/seen")
        return b.run("return document.querySelector('#chart-requests .curve') && document.querySelector('#chart-latency .curve') && true")
    eventually(a_curve, "there are curves")


def follows_the_leader(page):
    """The page shows whom the servers that run have agreed on."""
    b = page.b

    def agrees():
        leader = page.ensemble.leader()
        return b.run("return document.querySelector(`[data-member='${arguments[0]}']`)?.dataset.role === 'leader'"
                     "&& document.querySelector('#elections tbody tr').textContent.startsWith(String(arguments[1]))", leader.number, leader.follows()[0])
    eventually(agrees, "the page has the new leader")


def test_a_failover_is_followed(page):
    b, ensemble, leader = page.b, page.ensemble, page.ensemble.leader()
    page.open(leader)
    leader.kill()
    # Its own page says so, and where the others are.
    b.wait("return !document.querySelector('#banner').hidden && document.querySelector('#others a')")
    assert "Trying again" in b.text("#banner") and b.text("#pulse") == "silent", b.text("#banner")
    links = b.run("return [...document.querySelectorAll('#others a')].map((a) => a.href)")
    assert sorted(links) == sorted(base(member) for member in ensemble.running()), links
    b.click("#others a")
    b.wait("return location.href === arguments[0] && document.documentElement.dataset.ready", links[0])
    follows_the_leader(page)
    # A page that was there when its leader died follows the next one by itself.
    second = ensemble.leader()
    leader.start()
    page.open(leader)
    second.kill()
    follows_the_leader(page)
    b.wait("return document.querySelector(`[data-member='${arguments[0]}'] .wrong`)", second.number)
    second.start()
    b.wait("return !document.querySelector(`[data-member='${arguments[0]}'] .wrong`)", second.number)
    assert b.run("return conclave.stream.live")


def test_the_page_returns_with_its_server(page):
    b, member = page.b, page.ensemble.followers()[0]
    page.open(member)
    member.kill()
    b.wait("return !document.querySelector('#banner').hidden")
    member.start()
    b.wait(IS_LIVE)
    assert b.text("#pulse") == "live"
    # One that stands still ends no connection, and is missed as well.
    member.send(signal.SIGSTOP)
    b.wait("return !document.querySelector('#banner').hidden")
    member.send(signal.SIGCONT)
    b.wait(IS_LIVE)


def test_no_place_for_another_reader(page):
    """The page says so, shows figures that come more slowly, and is live as soon as it can be."""
    b, readers = page.b, []
    b.open("about:blank")  # the page had a place itself, which the server finds to be free after a while

    def takes_a_place():
        reader = socket.create_connection((host_of(page.home), PORT))
        reader.sendall(b"GET /page/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if b" 200 " not in reader.recv(64):
            reader.close()
            return False
        readers.append(reader)
        threading.Thread(target=drain, args=[reader]).start()  # one that takes nothing loses its place
        return True

    def drain(reader):
        with reader:
            while reader.recv(1 << 16):
                pass

    try:
        while len(readers) < STREAMS_MAX:
            eventually(takes_a_place, "another reader has a place")
        page.open(page.home)
        b.wait("return document.querySelector('#banner').textContent.includes('no place for another reader')")
        assert b.text("#title") == f"Server {page.home.number}", b.text("#view-ensemble")
    finally:
        for reader in readers:
            reader.shutdown(socket.SHUT_RDWR)
    b.wait(IS_LIVE)


def card(name):
    return f"document.querySelector('[data-lock=\"{name}\"]')"


def test_locks_and_their_queues(page):
    b = page.b
    page.open(page.home, view="locks")
    with Held(page.ensemble) as held:
        holder = held.start("lock", "nightly", "--label", f"report {HOSTILE}")
        b.wait(f"return {card('nightly')}?.querySelector('.holders b')?.textContent === arguments[0]", f"report {HOSTILE}")
        facts = b.text("[data-lock=nightly] .holders")
        assert re.search(r"pid \d+ · token \d+ · for .* · session 0x", facts), facts
        held.start("lock", "nightly", "--label", "backup")
        b.wait(f"return {card('nightly')}.querySelectorAll('tbody tr').length === 1")
        held.start("lock", "nightly", "--label", "vacuum")
        b.wait(f"return {card('nightly')}.querySelectorAll('tbody tr').length === 2")
        rows = b.run(f"return [...{card('nightly')}.querySelectorAll('tbody tr')].map((r) => r.cells[1].textContent)")
        assert rows == ["backup", "vacuum"], rows
        assert b.run("return document.querySelectorAll('#waits [data-contender]').length") == 3
        assert "vacuum waits at nightly for backup" in b.text("#waits"), b.text("#waits")
        assert not b.run("return document.querySelector('.deadlock')")
        holder.terminate()
        b.wait(f"return {card('nightly')}.querySelector('.holders b').textContent === 'backup'")
        held.start("elect", "primary", "--label", "first", "--priority", "5")
        b.wait(f"return {card('primary')}?.querySelector('.holders b')?.textContent === 'first'")
        held.start("elect", "primary", "--label", "second", "--priority", "3")
        b.wait(f"return {card('primary')}.querySelector('tbody tr')?.textContent.includes('second')")
        assert b.run(f"return {card('primary')}.querySelector('tbody tr').lastChild.textContent") == "3"
        b.type("#filter", "prim")
        assert b.run("return [...document.querySelectorAll('[data-lock]')].map((e) => e.dataset.lock)") == ["primary"]
        page.unharmed()


def test_a_wrapper_waits_for_its_command(page):
    b, zk = page.b, page.ensemble.client(page.home)
    page.open(page.home, view="locks")
    with zk.Lock("/conclave/locks/inside", "somebody"), Held(page.ensemble) as held:
        held.start("lock", "outside", "--label", "wrapper", "--", CONCLAVE, "lock", "inside", "--recipe", "kazoo",
                   "--label", "command")
        b.wait("return document.querySelector('#waits').textContent.includes('wrapper waits for command, which its command has started')")
        assert "command waits at inside for somebody" in b.text("#waits"), b.text("#waits")
        assert "its command" in b.run("return [...document.querySelectorAll('#waits svg > text')].map((e) => e.textContent)")
        assert not b.run("return document.querySelector('.deadlock')")
        page.unharmed()


def test_more_locks_than_a_page_has(page):
    b, zk = page.b, page.ensemble.client(page.home)
    for number in range(150):
        zk.ensure_path(f"/conclave/locks/many-{number:03}")
    page.open(page.home, view="locks")
    b.wait("return document.querySelector('#more-locks')")
    assert b.run("return document.querySelectorAll('[data-lock]').length") == 100
    b.click("#more-locks")
    b.wait("return document.querySelectorAll('[data-lock^=many-]').length === 150 && !document.querySelector('#more-locks')")
    for number in range(150):
        zk.delete(f"/conclave/locks/many-{number:03}")
    b.wait("return !document.querySelector('[data-lock^=many-]')")


def test_waits_are_estimated(page):
    """... from the holds that were seen while the page was looking."""
    b, holder = page.b, page.ensemble.client(page.home)
    page.open(page.home, view="locks")
    for number in range(6):
        with holder.Lock("/conclave/locks/often", f"hold {number}"):
            b.wait(f"return {card('often')}?.querySelector('.holders b')?.textContent === arguments[0]", f"hold {number}")
    with holder.Lock("/conclave/locks/often", "the last"), Held(page.ensemble) as held:
        held.start("lock", "often", "--recipe", "kazoo", "--label", "waits")
        estimate = b.wait(f"return {card('often')}?.querySelector('tbody tr')?.lastChild.textContent")
        assert re.search(r"\d.* (to \d|or more)", estimate), estimate


def test_a_deadlock_is_red(page):
    b = page.b
    anna, bob = page.ensemble.client(), page.ensemble.client()
    locks = {(zk, name): zk.Lock(f"/conclave/locks/{name}", who) for zk, who in ((anna, "anna"), (bob, "bob")) for name in ("left", "right")}
    assert locks[anna, "left"].acquire() and locks[bob, "right"].acquire()
    page.open(page.home, view="locks")
    b.wait(f"return {card('left')} && {card('right')}")
    assert not b.run("return document.querySelector('.deadlock')")
    waiting = [anna.handler.spawn(wait_in_vain, locks[anna, "right"]), bob.handler.spawn(wait_in_vain, locks[bob, "left"])]
    told = b.wait("return document.querySelector('.deadlock')?.textContent")
    assert "anna" in told and "bob" in told and "Deadlock" in told, told
    red = b.run("return getComputedStyle(document.documentElement).getPropertyValue('--wrong').trim()")
    assert red == "#dc2626"
    for part in ("#waits g.wrong rect", "#waits path.wait.wrong"):
        drawn = b.run("return [...document.querySelectorAll(arguments[0])].map((e) => getComputedStyle(e).stroke)", part)
        assert drawn == ["rgb(220, 38, 38)"] * 2, (part, drawn)
    locks[anna, "right"].cancel()
    locks[bob, "left"].cancel()
    locks[anna, "left"].release()
    locks[bob, "right"].release()
    b.wait("return !document.querySelector('.deadlock')")
    for thread in waiting:
        thread.join(TIMEOUT_S)


def test_hostile_names_and_data_do_nothing(page):
    b = page.b
    zk = page.ensemble.client(page.home)
    name = HOSTILE + "\"'&{path}\u202e"
    zk.create(f"/{name}", SCRIPT.encode())
    zk.create(f"/{name}/__proto__", bytes(range(256)))
    page.tree(page.home, f"/{name}")
    assert b.text("#node-path") == f"/{name}" and b.text("#data") == SCRIPT, b.text("#node")
    rows = b.run("return [...document.querySelectorAll('.node .name')].map((e) => e.textContent)")
    assert name in rows, rows
    page.tree(page.home, f"/{name}/__proto__")
    assert b.text("#data").startswith("000000  00 01 02") and "ff" in b.text("#data"), b.text("#data")
    b.click("#node input[value=json]")
    assert "not JSON" in b.text("#data-note"), b.text("#data-note")
    b.click("#node input[value=text]")
    assert "not UTF-8" in b.text("#data-note"), b.text("#data-note")
    page.unharmed()


def test_data_as_text_json_and_hex(page):
    b = page.b
    page.ensemble.client(page.home).create("/forms", json.dumps({"a": [1, "ç"]}).encode())
    page.tree(page.home, "/forms")
    assert b.text("#data") == json.dumps({"a": [1, "ç"]}, indent=2, ensure_ascii=False), b.text("#data")
    b.click("#node input[value=hex]")
    assert b.text("#data").startswith("000000  7b 22 61 22"), b.text("#data")
    assert "as=hex" in b.address() and "forms" in b.address(), b.address()
    assert re.search(r"version0cversion0", b.text("#stat")) and "create, delete" in b.text("#node table").replace("read, write, ", "")


def test_what_others_may_not_read(page):
    b = page.b
    zk = page.ensemble.client(page.home, auth_data=[("digest", "user:secret")])
    acl = [make_digest_acl("user", "secret", all=True)]
    zk.create("/mine", b"her data", acl=acl)
    zk.create("/mine/inner", b"", acl=acl)
    page.tree(page.home, "/mine")
    assert b.text("#data-refused") and not b.text("#data"), b.text("#node")
    b.run("const tree = conclave.views.tree; tree.toggle(tree.rows.list[tree.cursor])")
    b.wait("return document.querySelector('#tree-note').textContent.includes('ACL')")
    b.click("#operator")
    b.type("#token", "wrong")
    b.click("#use-token")
    assert "does not know this token" in b.wait("const e = document.querySelector('#dialog .error'); return !e.hidden && e.textContent")
    b.click("#cancel")
    assert b.run("return document.querySelector('#operator').getAttribute('aria-pressed')") == "false"
    page.operator()
    assert b.wait("return document.querySelector('#data')?.textContent") == "her data"
    # It is nowhere but in the memory of the page.
    kept = b.run("return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href, history.state, document.documentElement.outerHTML])")
    assert TOKEN not in kept
    b.open("about:blank")
    page.tree(page.home, "/mine")
    assert b.text("#data-refused")


def test_changes_only_by_an_operator_where_the_server_allows_it(page):
    b, ensemble = page.b, page.ensemble
    writes, reads = page.home, ensemble.members[2]
    zk = ensemble.client(writes)
    zk.create("/edited", b"before")
    ensemble.client(reads).sync("/edited")
    page.tree(reads, "/edited")
    page.operator()
    assert "--web-write" in b.text("#rights") and not b.run("return document.querySelector('#edit, #create, #delete')")
    page.tree(writes, "/edited")
    assert "token" in b.wait("return document.querySelector('#rights')?.textContent") and not b.run("return document.querySelector('#edit, #create, #delete')")
    page.operator()
    b.wait("return document.querySelector('#edit')")
    b.click("#edit")
    b.run("const e = document.querySelector('#new-data'); e.value = arguments[0]", f"after {HOSTILE}")
    b.click("#save")
    b.wait("return document.querySelector('#data')?.textContent === arguments[0]", f"after {HOSTILE}")
    eventually(lambda: zk.get("/edited")[0].decode() == f"after {HOSTILE}", "it is written")
    # What another has changed meanwhile is not undone.
    zk.set("/edited", b"by another")
    b.click("#edit")
    b.click("#save")
    assert "Somebody has changed" in b.wait("const e = document.querySelector('#dialog .error'); return !e.hidden && e.textContent")
    b.click("#cancel")
    b.click("#create")
    b.type("#new-name", "child")
    b.click("#save")
    page.shown("/edited/child")
    assert zk.exists("/edited/child") and b.text("#said") == "/edited/child is created.", b.text("#said")
    b.click("#delete")
    assert "/edited/child" in b.text("#dialog") and b.run("return document.activeElement.id") == "cancel"
    b.click("#cancel")
    assert zk.exists("/edited/child")
    b.click("#delete")
    b.click("#delete-sure")
    page.shown("/edited")
    assert not zk.exists("/edited/child")
    b.wait("return document.activeElement.id === 'rows'")  # not nowhere, when the button is gone
    page.unharmed()


def focus_by_tab(b, condition):
    for _ in range(40):
        if b.run(f"return {condition}"):
            return
        b.keys("Tab")
    raise AssertionError(f"Tab does not lead to {condition}")


def test_keyboard_only(page):
    b = page.b
    zk = page.ensemble.client(page.home)
    for path in ("/keys", "/keys/a", "/keys/b"):
        zk.create(path, path.encode())
    page.open(page.home)
    focus_by_tab(b, "document.activeElement.id === 'to-tree'")
    b.keys("Enter")
    b.wait("return !document.querySelector('#view-tree').hidden && conclave.views.tree.rows.list.length > 1")
    focus_by_tab(b, "document.activeElement.id === 'rows'")
    b.keys("Home")
    for _ in range(b.run("return conclave.views.tree.rows.list.findIndex((r) => r.path === '/keys')")):
        b.keys("Down")
    page.shown("/keys")
    b.keys("Right")
    b.wait("return conclave.views.tree.rows.list.some((r) => r.path === '/keys/b')")
    b.keys("Down", "Down")
    page.shown("/keys/b")
    active = b.run("return document.getElementById(document.querySelector('#rows').getAttribute('aria-activedescendant'))?.dataset.path")
    assert active == "/keys/b", active
    b.keys("Left", "Left")
    b.wait("return !conclave.views.tree.rows.list.some((r) => r.path === '/keys/b')")
    focus_by_tab(b, "document.activeElement.name === 'form'")
    b.keys("Right")
    b.run("document.activeElement.blur()")
    focus_by_tab(b, "document.activeElement.id === 'operator'")
    b.keys("Enter", "x", "Escape")
    assert not b.run("return document.querySelector('#dialog').open")
    # What has the focus keeps it while numbers change beside it.
    page.open(page.home)
    focus_by_tab(b, "document.activeElement.closest('#members') && document.activeElement.tagName === 'A'")
    before = b.run("return conclave.stream.state.time_ms")
    b.wait("return conclave.stream.state.time_ms > arguments[0] + 2000", before)
    assert b.run("return document.activeElement.tagName === 'A' && document.activeElement.isConnected")


def test_both_languages(page):
    b = page.b
    with Held(page.ensemble) as held:
        for label in ("holds", "waits"):
            held.start("lock", "spoken", "--label", label)
        held.start("elect", "spoken", "--label", "leads")
        for language in ("en", "pt"):
            page.open(page.home, lang=language)
            page.has_words()
            b.click("#to-locks")
            b.wait("return document.querySelectorAll('[data-lock=spoken]').length === 2 && document.querySelector('[data-lock=spoken] tbody tr')")
            page.has_words()
            b.click("#to-tree")
            page.shown("/")
            page.has_words()
    page.open(page.home, lang="pt")
    assert b.text("#to-tree") == "Árvore" and "Membros" in b.text("#members") and b.run("return document.documentElement.lang") == "pt"
    b.choose("#language", "en")
    b.wait("return document.querySelector('#to-tree').textContent === 'Tree' && document.querySelector('#members').textContent.includes('Members')")


def test_every_text_is_there(_):
    texts.every_text_is_there("server")


def test_what_is_in_an_address_is_not_believed(page):
    b = page.b
    for strange in ({"lang": "toString", "view": "__proto__"}, {"view": "tree", "path": "/../..//\0", "as": "constructor"}, {"view": "tree", "path": "nowhere"}):
        page.open(page.home, **strange)
        b.wait("return document.querySelector('.view:not([hidden])').textContent")
        page.unharmed()


def test_very_many_children_scroll(page):
    """... all of them, and only those that are seen are elements."""
    b, count, batch = page.b, int(os.environ.get("CHILDREN", "100000")), 10000
    with tempfile.TemporaryDirectory(dir=os.environ.get("WORK")) as directory:
        alone = started(directory, 0)
        try:
            client = raw.Client(alone.members[0].address)
            client.create("/many")
            for first in range(0, count, batch):
                client.call(raw.MULTI, raw.multi_record([(raw.CREATE, raw.create_record(f"/many/{i}")) for i in range(first, first + batch)]))
            page.tree(alone.members[0], "/many")
            b.run("const tree = conclave.views.tree; tree.toggle(tree.rows.list[tree.cursor]); window.most = 0")
            # Scrolls as a wheel does, and notes the most elements that there ever were.
            b.run("window.down = setInterval(() => { const box = document.querySelector('#rows'); box.scrollTop = box.scrollHeight;"
                  "window.most = Math.max(window.most, document.querySelectorAll('.node').length); }, 5)")
            wanted = count + 4  # with the root, its children, and this one
            b.wait("return conclave.views.tree.rows.list.length >= arguments[0] && !conclave.views.tree.rows.list.at(-1).more", wanted - 1)
            b.run("clearInterval(window.down)")
            assert 10 < b.run("return window.most") < 200, b.run("return window.most")
            b.run("document.querySelector('#rows').focus()")
            b.keys("End", "Up")
            last = b.run("const tree = conclave.views.tree; return tree.rows.list[tree.cursor].path")
            page.shown(last)
            assert b.run("return [...document.querySelectorAll('.node.current')].map((e) => e.dataset.path)") == [last]
            b.keys("Home")
            page.shown("/")
            assert b.run("return document.querySelector('#rows').scrollTop") == 0
        finally:
            alone.stop()


def test_nothing_leaves_the_origin(page):
    first = urllib.parse.urlsplit(base(page.ensemble.members[0])).netloc.split(".", 2)
    hosts = {f"127.{int(first[1]) - 64 + 64 * quarter}.{first[2]}" for quarter in range(4)}
    asked = [url for url in page.b.requests() if not url.startswith(("about:", "data:", "chrome:"))]
    strange = [url for url in asked if urllib.parse.urlsplit(url).netloc not in hosts]
    assert asked and not strange, strange
    # A server that was killed, a node that is not there, a token that is wrong: nothing else may have gone wrong.
    complaints = [text for text in page.b.complaints() if "Failed to load resource" not in text]
    assert not complaints, complaints


def main():
    logging.basicConfig(level=logging.CRITICAL)
    with judged(None), kept_directory("server") as path:
        ensemble = started(path, 1, 2, 3)
        try:
            with Browser() as browser:
                status = checks.run(globals(), Page(browser, ensemble), browser)
        finally:
            ensemble.stop()
        sys.exit(status)


main()
