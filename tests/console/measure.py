#!/usr/bin/python3
"""What the console costs: measure.py KV [ROUNDS]

Serves a store with 1,000 datasets, one of which has a million rows, and measures in a Chromium: the first paint of the page over loopback;
the longest frame while the list of datasets is scrolled; how long a page of the million rows takes. Then it makes the requests of one open
console 100 times at once, for a minute, and says which part of a core the server uses for them."""
import http.client
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from selenium.webdriver.common.by import By

sys.dont_write_bytecode = True  # nothing is left beside the sources

from browser import Browser

DATASETS = 1_000
ROWS = 1_000_000
CONSOLES = 100
WATCH_S = 60

# Scrolls the whole list in two seconds, a step for each frame, and returns the times between frames.
SCROLL = """
const done = arguments[arguments.length - 1];
const frames = [];
const begin = performance.now();
let before = begin;
function step(now) {
  frames.push(now - before);
  before = now;
  window.scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * Math.min(1, (now - begin) / 2000));
  if (now - begin < 2000) requestAnimationFrame(step); else done(frames.slice(1));
}
requestAnimationFrame(step);
"""


def make_store(kv, folder):
    def run(*arguments, text=None):
        subprocess.run([kv, "--data", folder / "store", *arguments], input=text, text=True, check=True, stdout=subprocess.DEVNULL)

    requests = "".join(json.dumps({"op": "create_dataset", "dataset": f"dataset_{i:04}"}) + "\n" for i in range(DATASETS - 1))
    run("exec", text=requests)
    run("dataset", "create", "million")
    lines = (json.dumps({"row": f"row:{i:07}", "items": [{"column": "c", "cells": [{"timestamp": 1_700_000_000_000 + i, "value": f"value {i}"}]}]})
             for i in range(ROWS))
    (folder / "rows.jsonl").write_text("\n".join(lines))
    run("import", "million", str(folder / "rows.jsonl"))


def processor_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_paint(url, rounds):
    times = []
    for _ in range(rounds):
        browser = Browser(url)  # with an empty cache
        browser.see("The last minute")
        times.append(browser.driver.execute_script("return performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        browser.quit()
    return times


def scrolling(browser, rounds):
    browser.go("#/datasets")
    browser.see(f"dataset_{DATASETS - 2:04}")
    time.sleep(1)
    return [max(browser.driver.execute_async_script(SCROLL)) for _ in range(rounds)]


def paging(browser, rounds):
    browser.go("#/datasets/million")
    browser.see("row:0000000")
    times = []
    for page in range(1, rounds + 1):
        begin = time.monotonic()
        browser.click("Next")
        browser.see(f"Page {page + 1}")
        browser.until(lambda: not browser.driver.find_elements(By.CLASS_NAME, "loading"), "the page")
        times.append((time.monotonic() - begin) * 1000)
    return times


def requests_of_a_minute(url):
    """The requests of an open overview within a minute, with their times."""
    browser = Browser(url, keeps_requests=True)
    browser.see("The last minute")
    browser.driver.get_log("performance")
    begin = time.monotonic()
    time.sleep(WATCH_S)
    made = []
    for entry in browser.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            request = message["params"]["request"]
            made.append((message["params"]["timestamp"], request["method"], request["url"], request.get("postData"), request["headers"]))
    browser.quit()
    assert time.monotonic() - begin < 2 * WATCH_S and len(made) > 5, made
    first = min(at for at, *_ in made)
    return sorted((at - first, method, to, body, headers) for at, method, to, body, headers in made)


def consoles(pid, made):
    failures = []

    def one(begin):
        connection = None  # kept, as a browser does
        for at, method, to, body, headers in made:
            time.sleep(max(0, begin + at - time.monotonic()))
            place = urllib.parse.urlsplit(to)
            connection = connection or http.client.HTTPConnection(place.netloc)
            try:
                connection.request(method, place.path, body, {name: value for name, value in headers.items() if name.lower() != "content-length"})
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    failures.append(f"{to}: {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{to}: {error}")
                return

    idle_s = processor_s(pid)
    time.sleep(10)
    idle = (processor_s(pid) - idle_s) / 10
    begin, before = time.monotonic(), processor_s(pid)
    threads = [threading.Thread(target=one, args=(begin + random.uniform(0, 10),)) for _ in range(CONSOLES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    return (processor_s(pid) - before) / (time.monotonic() - begin), idle


def main():
    kv, rounds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 9
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_store(kv, folder)
        with subprocess.Popen([kv, "--data", folder / "store", "serve", "--listen", "127.0.0.1:0", "--http-api", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                port = re.search(r"http api on port (\d+)", server.stdout.readline())[1]
                url = f"http://127.0.0.1:{port}/"
                paints = first_paint(url, rounds)
                print(f"first paint: median {statistics.median(paints):.0f} ms, most {max(paints):.0f} ms of {rounds} (bar: 300 ms)", flush=True)
                browser = Browser(url)
                frames = scrolling(browser, rounds)
                print(f"the list of {DATASETS:,} datasets: longest frame of a scroll, median {statistics.median(frames):.0f} ms, most {max(frames):.0f} ms", flush=True)
                pages = paging(browser, rounds)
                print(f"a page of a dataset of {ROWS:,} rows: median {statistics.median(pages):.0f} ms, most {max(pages):.0f} ms", flush=True)
                browser.quit()
                made = requests_of_a_minute(url)
                share, idle = consoles(server.pid, made)
                print(f"{CONSOLES} open consoles, {len(made)} requests a minute each: {share * 100:.1f} % of a core (bar: 2 %), "
                      f"of which {idle * 100:.1f} % without any", flush=True)
            finally:
                server.terminate()


main()
