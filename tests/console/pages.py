#!/usr/bin/python3
"""Every page and every action of the console, in a real Chromium, on a real fleet: pages.py FOLDER

FOLDER/setup.json says where the server is. What the browser cannot do (stop ZooKeeper, restart the server) is asked of the
program that runs this, by a file FOLDER/do-NAME; it is done when FOLDER/done-NAME is there. FOLDER/result has "passed" at
the end."""
import json
import os
import pathlib
import sys
import time
import traceback

from selenium.webdriver.common.keys import Keys

sys.dont_write_bytecode = True  # nothing is left beside the sources

from browser import Browser, literal

FOLDER = pathlib.Path(sys.argv[1])
SETUP = json.loads((FOLDER / "setup.json").read_text())
# ./dev gets it; without it the accessibility is not checked.
AXE_FILE = pathlib.Path(__file__).resolve().parents[2] / "build/axe.js"
AXE = AXE_FILE.read_text() if AXE_FILE.exists() else None
SHOTS = os.environ.get("KV_CONSOLE_SHOTS")
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def do(name):
    (FOLDER / f"do-{name}").touch()
    deadline = time.monotonic() + 120
    while not (FOLDER / f"done-{name}").exists():
        assert time.monotonic() < deadline, name
        time.sleep(0.05)


def check(browser, name):
    browser.check_page(name, AXE, SHOTS)
    assert browser.driver.title != "owned", "stored text was taken for a page"


def sign_in(browser):
    browser.see("Paste a token")
    browser.sign_in("wrong")
    browser.see("does not know this token")
    check(browser, "sign-in")
    browser.sign_in("token-ops")
    browser.see("What needs somebody", "ops")
    assert browser.driver.execute_script("return localStorage.length + sessionStorage.length + document.cookie.length") == 0


def overview(browser):
    browser.go("#/")
    browser.see("Nothing.", "The last minute", "GetServer")
    browser.find("//figcaption[starts-with(normalize-space(), 'Calls')]/ancestor::figure//canvas")
    browser.fill("By", "datasets", within="//main")
    browser.see("events")
    browser.click("Numbers", within="(//figure)[1]")
    browser.find("(//figure)[1]//details//table//td")
    check(browser, "overview")


def datasets(browser):
    browser.go("#/datasets")
    browser.see("events", "pins", "boards")
    command = browser.act("Create a dataset", {"Name": "clicks", "Backend": "rocksdb", "Versions of a column that are kept": "5"})
    assert command == "kv dataset create --backend rocksdb --max-versions 5 clicks", command
    browser.see("clicks")
    check(browser, "datasets")
    browser.fill("Names with", "click", within="//main")
    browser.miss("boards")
    browser.click("clicks")
    browser.find("//h1[normalize-space()='clicks']")
    command = browser.act("Alter", {"Age at which cells expire, in ms": "86400000"})
    assert command == "kv dataset alter --ttl-ms 86400000 clicks", command
    browser.see("after 1 d")
    browser.act("Remove what is expired")
    # A mistake is told, and changes nothing.
    browser.click("Alter")
    browser.fill("Age at which cells expire, in ms", "soon")
    browser.find("//dialog//button[@type='submit']").click()
    browser.see("INVALID_ARGUMENT", "ttl_ms")
    browser.click("Cancel")
    browser.act("Drop", confirm="clicks")
    browser.until(lambda: browser.driver.current_url.endswith("#/datasets"), "the list of datasets")
    browser.miss("clicks")


def rows(browser):
    browser.go("#/datasets/events")
    browser.see("user:0", "pin:0")
    browser.find("//h1[normalize-space()='events']")
    command = browser.act("Put a cell", {"Row": HOSTILE, "Column": "c'", "Value": HOSTILE}, within="//form[1]")
    assert command == "kv put events '" + HOSTILE.replace("'", "'\\''") + "' 'c'\\''=" + HOSTILE.replace("'", "'\\''") + "'", command
    browser.see(HOSTILE)
    browser.act("Put a cell", {"Row": "bytes", "Column": "c", "Value": "ff 00 0a"}, within="//form[1]", ticks=["The value is given as hexadecimal digits"])
    browser.fill("From row", "bytes", within="//main")
    browser.fill("Before row", "bytez", within="//main")
    browser.click("Read", within="//main")
    browser.see("\\xff\\x00\\x0a")
    # A shell, a terminal or the program would take these texts for something else.
    browser.click("Put", within="//td")
    browser.fill("Value", "it's\u202e")
    browser.see("kv --escaped put events bytes 'c=it'\\''s\\xe2\\x80\\xae'")
    browser.click("Cancel")
    browser.click("Put a cell", within="//form[1]")
    browser.fill("Row", "--server=evil")
    browser.fill("Column", "a=b")
    browser.see("printf '%s\\n' '{\"op\":\"put_row\",\"dataset\":\"events\",\"row\":\"--server=evil\"")
    browser.fill("Column", "a")
    browser.see("kv put -- events --server=evil a=")
    browser.click("Cancel")
    browser.tick("Bytes as hexadecimal digits")
    browser.see("ff 00 0a")
    browser.tick("Bytes as hexadecimal digits")
    check(browser, "rows")
    browser.act("Delete", within="//section[.//h3[contains(., 'bytes')]]//td")
    browser.see("There are no such rows.")
    long_texts(browser)
    # A page after the other, to the end and back.
    browser.fill("From row", "user:", within="//main")
    browser.fill("Before row", "user;", within="//main")
    browser.fill("Versions", "3", within="//main")
    browser.click("Read", within="//main")
    browser.see("user:0", "Page 1", "older")
    browser.click("Next")
    browser.see("Page 2")
    browser.miss("user:0")
    browser.click("Back")
    browser.see("Page 1", "user:0")
    browser.fill("From row", HOSTILE, within="//main")
    browser.fill("Before row", "=", within="//main")
    browser.click("Read", within="//main")
    browser.act("Delete the row")
    browser.see("There are no such rows.")


def long_texts(browser):
    """Keys and values that are too long to be shown at once, and can be shown all the same."""
    middle = "m" * 300
    for key in ("long:" + middle + "one", "long:" + middle + "two"):
        browser.act("Put a cell", {"Row": key, "Column": "c", "Value": "v" * 5000 + "end of " + key[-3:]}, within="//form[1]")
    browser.fill("From row", "long:", within="//main")
    browser.fill("Before row", "long;", within="//main")
    browser.click("Read", within="//main")
    browser.see("mone", "mtwo", "end of one", "end of two")  # what tells them apart
    browser.miss(middle, "v" * 2000)
    check(browser, "long-texts")
    one = "//section[.//h3[contains(., 'mone')]]"
    value = browser.find(one + "//button[@aria-label='Show all 5,010 characters of the value']")
    value.send_keys(Keys.ENTER)
    browser.see("v" * 5000 + "end of one")
    value = browser.find(one + "//button[@aria-label='Show less of the value' and @aria-expanded='true']")
    value.send_keys(Keys.SPACE)
    browser.miss("v" * 2000)
    browser.click("Show all 308 characters", within=one + "//h3")
    browser.see("long:" + middle + "one")
    for end in ("mone", "mtwo"):
        browser.act("Delete the row", within=f"//section[.//h3[contains(., '{end}')]]")
        browser.miss(end)
    browser.see("There are no such rows.")


def no_page(browser):
    """An address without a page says so, whatever stands in it, and the way to the others is there."""
    for address, shown in (("#/datasets/%zz", "#/datasets/%zz"), ("#/nonsense/x", "#/nonsense/x"), ("#/constructor", "#/constructor")):
        browser.go(address)
        browser.see(f"The console has no page at {shown}.")
        browser.find("//nav//a[normalize-space()='Datasets']")
    check(browser, "no-page")
    browser.driver.refresh()  # an address without a page may be the first one
    browser.see("Paste a token")
    browser.sign_in("token-ops")
    browser.see("The console has no page at #/constructor.")
    browser.click("Overview", within="//header")
    browser.see("What needs somebody")


def objects(browser):
    browser.go("#/datasets/pins")
    browser.see("chair")
    browser.click("Create an object")
    browser.fill("Its fields, as JSON", '{"title": ' + json.dumps(HOSTILE) + ', "big": 12345678901234567890123}')
    browser.find("//dialog//button[@type='submit']").click()
    browser.see("INVALID_ARGUMENT")  # no such number can be kept
    browser.fill("Its fields, as JSON", '{"title": ' + json.dumps(HOSTILE) + ', "big": 9007199254740993}')
    browser.find("//dialog//button[@type='submit']").click()
    browser.see("Its ID is")
    found = browser.find("//dialog").text.split("Its ID is ")[1].split(".")[0]
    browser.click("Close")
    browser.fill("The object with the ID", found, within="//main")
    browser.click("Read", within="//main")
    browser.see("onerror", "9007199254740993")
    command = browser.act("Change", {"Patch": '{"big": 9007199254740995}'})
    assert command == f"kv object update pins {found} '{{\"big\": 9007199254740995}}'", command
    browser.see("9007199254740995")
    check(browser, "objects")
    browser.act("Delete")
    browser.see("NOT_FOUND")
    browser.tick("Also those that were deleted softly")
    browser.click("Read", within="//main")
    browser.see("deleted softly")
    browser.act("Delete", ticks=['For good; else it is hidden ("active": false)'])
    browser.see("NOT_FOUND")


def mappings(browser):
    browser.go("#/datasets/boards")
    browser.see("from", "sequence")
    browser.act("Add an entry", {"From": "7", "To": "99", "Sequence": "5"})
    browser.fill("Entries of the ID", "7", within="//main")
    browser.click("Read", within="//main")
    browser.see("1 entries", "99")
    browser.fill("Entries of the ID", SETUP["board"], within="//main")
    browser.tick("With the objects that they point to")
    browser.click("Read", within="//main")
    browser.see("chair")
    check(browser, "mappings")
    browser.fill("Entries of the ID", "7", within="//main")
    browser.tick("With the objects that they point to")
    browser.click("Read", within="//main")
    browser.see("99")
    browser.act("Remove", within="//table")
    browser.see("There are no such entries.")


def consumers(browser):
    browser.go("#/datasets/followed")
    browser.see("Who follows its changes", "search")
    check(browser, "consumers")
    command = browser.act("Drop", within="//table[caption='Consumers']")
    assert command == "kv consumers drop followed search", command
    browser.see("Nobody has said so.")


def reports(browser):
    browser.go("#/reports")
    browser.click("visits")
    browser.see("What it cost", "segment keys")
    browser.fill("From", "2026-01-01", within="//main")
    browser.fill("Until", "2026-01-08", within="//main")
    browser.fill("A series for each", "country", within="//main")
    browser.fill("Drawn as", "stacked", within="//main")
    browser.click("Ask")
    browser.find("//figure//canvas")
    browser.until(lambda: "DE" in browser.find("//figure//div[@class='legend']").text, "a series for DE")
    browser.see("kv report query --from=2026-01-01 --to=2026-01-08 --step 1d --by country --partial visits views")
    browser.click("Numbers")
    browser.see("2026-01-03 00:00:00 UTC")
    check(browser, "reports")
    # The address asks the same question again.
    address = browser.driver.current_url.split("#")[1]
    browser.go("#/reports")
    browser.see("visits")
    browser.go("#" + address)
    browser.until(lambda: "FR" in browser.find("//figure//div[@class='legend']").text, "the same chart")
    browser.fill("Only country", "FR", within="//main")
    browser.fill("Beside", "-1d", within="//main")
    browser.fill("Drawn as", "bars", within="//main")
    browser.click("Ask")
    browser.until(lambda: "FR (-1d)" in browser.find("//figure//div[@class='legend']").text, "the day before")
    browser.fill("Step", "", within="//main")
    browser.fill("Beside", "", within="//main")
    browser.click("Ask")
    browser.find("//table//th[normalize-space()='FR']")
    browser.fill("Metrics", "nothing", within="//main")
    browser.click("Ask")
    browser.see("NOT_FOUND")


def migrations(browser):
    browser.go("#/migrations/events")
    browser.see("events does not migrate.")
    command = browser.act("Migrate", {"To the backend": "mysql"}, plan="It is possible.")
    assert command == "kv migrate create --to mysql events", command
    browser.see("recorded; nothing was done yet")
    browser.act("Throttle" if browser.has("//button[normalize-space()='Throttle']") else "Start")
    browser.see("the copy is kept current")
    browser.find("//figure//canvas")
    browser.act("Throttle", {"Units copied a second at most": "100000"})
    browser.see("units_per_s 100000")
    browser.act("Pause")
    browser.see("paused")
    browser.act("Resume")
    browser.act("Compare again")
    browser.see("the copy is kept current")
    browser.act("Cut over", confirm="events", plan="rocksdb serves now.")
    browser.see("the way back is open")
    check(browser, "migration")
    browser.act("Reverse", confirm="events")
    browser.find("//dt[normalize-space()='serves']/../dd[normalize-space()='rocksdb']")
    browser.see("What happened", "ops")
    browser.go("#/migrations")
    browser.find("//table//a[normalize-space()='events']")
    check(browser, "migrations")
    browser.click("events", within="//table")
    browser.act("Cancel", confirm="events", within="//main")
    browser.until(lambda: browser.has("//span[normalize-space()='aborted']") or "does not migrate" in browser.text(), "the end of the migration")
    # The two ways to end one that has cut over: everything as it was, or the source gone.
    for end, phase, backend in (("Roll back", "aborted", "rocksdb"), ("Finish", "finished", "mysql")):
        browser.go("#/migrations/boards")
        browser.act("Migrate", {"To the backend": "mysql"})
        browser.act("Start")
        browser.see("the copy is kept current")
        browser.act("Cut over", confirm="boards")
        browser.see("the way back is open")
        command = browser.act(end, confirm="boards", within="//main")
        assert command == f"kv migrate {end.lower().replace(' ', '')} boards", command
        browser.until(lambda phase=phase: browser.has(f"//span[normalize-space()='{phase}']") or "does not migrate" in browser.text(), "the end of the migration")
        browser.go("#/datasets/boards")
        browser.see(backend)


def shards(browser):
    browser.go("#/shards")
    browser.see("Hosts", SETUP["slave"], "ID shards", "No operation is under way.", "No process of kv operate runs")
    canvas = browser.find("(//canvas)[1]")
    canvas.send_keys("")  # takes the focus
    canvas.send_keys(Keys.ARROW_RIGHT)
    browser.find("//dt[normalize-space()='range']/../dd[normalize-space()='0 to 7']")
    canvas.send_keys(Keys.ARROW_DOWN)
    browser.see("not open")
    check(browser, "shards")
    command = browser.act("Open shards", {"First and last shard": "8-9", "Host that accepts the writes": SETUP["master"],
                                          "Host that replicates from it": SETUP["slave"]}, confirm="open", plan="")
    assert command == f"kv shards open --range 8-9 --master {SETUP['master']} --slave {SETUP['slave']}", command
    command = browser.act("Move shards", {"First and last shard": "4-7", "The pair that gets them": SETUP["other_pair"]}, confirm="move", plan="")
    assert command == f"kv shards move --range 4-7 --to {SETUP['other_pair']}", command
    browser.find(f"//table//td[normalize-space()={literal(SETUP['other_pair'].split(',')[0])}]")
    row = f"//tr[td[1][contains(., {literal(SETUP['slave'])})]]"
    browser.act("Promote", confirm=SETUP["slave"], plan="master", within=row)
    browser.until(lambda: browser.has(f"//tr[td[1][contains(., {literal(SETUP['slave'])})]]/td[2][starts-with(normalize-space(), 'master')]"),
                  "the slave as master")


def backups(browser):
    browser.go("#/backups")
    browser.see("Make a backup")
    browser.act("Make a backup")
    browser.see("The last backup")
    first = "(//table[caption='Backups that there are']//tbody/tr)[1]"
    command = browser.act("Verify", within=first, ticks=["Read everything"])
    assert command.startswith("kv backup verify --backup 2") and command.endswith(" --deep"), command
    browser.fill("Of the dataset", "events")
    browser.click("Show")
    browser.see("There are none.", "kv backup list --dataset events")
    browser.act("Make a backup", {"Dataset": "events"})
    browser.find(first)
    check(browser, "backups")


def fewer_rights(browser):
    browser.click("Sign out", within="//header")
    browser.see("Paste a token")
    browser.sign_in("token-web")
    browser.see("web")
    for page in ("Shards", "Backups"):
        assert not browser.has(f"//nav//a[normalize-space()='{page}']"), page
    browser.see("The page Backups is not shown: your token needs the right")
    browser.go("#/")
    browser.see("need the right")
    browser.go("#/datasets")
    browser.see("events")
    browser.miss("pins")
    assert not browser.has("//button[normalize-space()='Create a dataset']")
    browser.go("#/datasets/events")
    browser.see("user:0")
    for button in ("Put a cell", "Alter", "Drop", "Delete the row"):
        assert not browser.has(f"//button[normalize-space()='{button}']"), button
    # The door refuses it all the same.
    answer = browser.driver.execute_async_script("""
        const done = arguments[0];
        fetch('v1/drop_dataset', {method: 'POST', headers: {Authorization: 'Bearer token-web'}, body: '{"dataset": "events"}'})
            .then((answer) => done(answer.status));""")
    assert answer == 403, answer
    browser.go("#/shards")
    browser.see("The page Shards is not shown: your token needs the right")
    browser.click("Sign out", within="//header")
    browser.see("Paste a token")
    browser.sign_in("token-ops")
    browser.see("Under way")


def trouble(browser):
    browser.go("#/")
    do("stop-zookeeper")
    browser.see("ZooKeeper does not answer")
    browser.go("#/datasets/events")
    browser.see("user:0")
    browser.go("#/shards")
    browser.see("UNAVAILABLE")
    do("start-zookeeper")
    browser.go("#/")
    browser.see("Nothing.")
    do("stop-server")
    browser.see("The server does not answer")
    do("start-server")
    browser.miss("The server does not answer")
    browser.see("Nothing.")
    do("forget-ops")
    browser.see("does not know your token any more")


def hidden(browser):
    """A page that nobody looks at asks for nothing, and goes on when somebody does."""
    # One that asks for nothing itself: the page of datasets may still be asking for their sizes.
    browser.go("#/nothing")
    browser.see("No such page")
    browser.driver.execute_script("""
        Object.defineProperty(document, 'hidden', {get: () => true, configurable: true});
        window.asked = 0;
        window.honest = window.fetch;
        window.fetch = (...words) => { ++window.asked; return window.honest(...words); };""")
    browser.go("#/datasets/boards")
    browser.see("Loading...")
    for _ in range(3):  # time enough to ask
        browser.driver.execute_async_script("const done = arguments[0]; honest('v1/server').then(() => setTimeout(done));")
    assert browser.driver.execute_script("return asked") == 0, "a hidden page asked for something"
    browser.driver.execute_script("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'));")
    browser.see("sequence")
    browser.driver.execute_script("window.fetch = window.honest;")


STEPS = [sign_in, overview, no_page, datasets, hidden, rows, objects, mappings, consumers, reports, migrations, shards, backups, fewer_rights, trouble]


def main():
    browser = Browser(SETUP["url"])
    try:
        for step in STEPS:
            began = time.monotonic()
            print(step.__name__, end=" ", flush=True)
            step(browser)
            print(f"{time.monotonic() - began:.1f} s", flush=True)
        (FOLDER / "result").write_text("passed")
    except BaseException:
        traceback.print_exc()
        browser.driver.save_screenshot(str(FOLDER / "failed.png"))
        raise
    finally:
        browser.quit()


main()
