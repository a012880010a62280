"""A real Chromium, and what the tests of the console ask of it."""
import json
import pathlib
import shutil
import time

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PATIENCE_S = 120


def literal(text):
    """A string of XPath."""
    if '"' not in text:
        return f'"{text}"'
    return "concat(" + ", '\"', ".join(f'"{part}"' for part in text.split('"')) + ")"


class Browser:
    def __init__(self, url, width=1280, keeps_requests=False):
        options = Options()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--window-size={width},1000",
                     "--lang=en", "--no-first-run", "--disable-extensions", "--disable-background-networking"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"} | ({"performance": "ALL"} if keeps_requests else {}))
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(PATIENCE_S)
        self.url = url
        self.driver.get(url)

    def quit(self):
        self.driver.quit()

    # ---- waiting ----

    def until(self, holds, what):
        """Waits until holds() returns something true, and returns that."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                found = holds()
                if found:
                    return found
            except (NoSuchElementException, StaleElementReferenceException):
                pass
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {PATIENCE_S} s: {what}\n--- {self.driver.current_url}\n{self.text()}")
            time.sleep(0.05)

    def find(self, xpath, what=None):
        def visible():
            for element in self.driver.find_elements(By.XPATH, xpath):
                if element.is_displayed():
                    return element
            return None

        return self.until(visible, what or xpath)

    def has(self, xpath):
        return any(element.is_displayed() for element in self.driver.find_elements(By.XPATH, xpath))

    def text(self):
        return self.driver.find_element(By.TAG_NAME, "body").text

    def see(self, *texts):
        for text in texts:
            self.until(lambda text=text: text in self.text(), f"the text {text!r}")

    def miss(self, *texts):
        for text in texts:
            self.until(lambda text=text: text not in self.text(), f"no text {text!r}")

    # ---- acting ----

    def go(self, address):
        self.driver.execute_script("location.hash = arguments[0]", address)

    def scope(self, within):
        return within or ("//dialog" if self.driver.find_elements(By.TAG_NAME, "dialog") else "//body")

    def click(self, label, within=None):
        xpath = f"{self.scope(within)}//*[(self::button or self::a or self::summary) and normalize-space()={literal(label)}]"

        def attempt():
            try:
                self.find(xpath, f"a button {label!r}").click()
                return True
            except StaleElementReferenceException:
                return False

        self.until(attempt, f"to press {label!r}")

    def field(self, label, within=None):
        named = f"{self.scope(within)}//label[normalize-space()={literal(label)}]"
        return self.find(f"{named}/..//*[self::input or self::select or self::textarea]", f"a field {label!r}")

    def fill(self, label, value, within=None):
        element = self.field(label, within)
        if element.tag_name == "select":
            element.find_element(By.XPATH, f"./option[normalize-space()={literal(value)}]").click()
            return
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(Keys.DELETE)
        element.send_keys(value)

    def tick(self, label):
        self.field(label).click()

    def act(self, button, fields=None, confirm=None, plan=None, press=None, within=None, ticks=()):
        """Goes through the window of an action, to its end. Returns the command that it showed."""
        self.click(button, within)
        for label in ticks:
            self.tick(label)
        for label, value in (fields or {}).items():
            self.fill(label, value)
        command = self.find("//dialog//div[@class='command']/code").text
        if plan is not None:
            self.click("What would it do?")
            self.until(lambda: plan in self.find("//dialog").text, f"the plan {plan!r}")
        submit = "//dialog//footer//button[@type='submit']"
        if confirm is not None:
            assert not self.find(submit).is_enabled(), "the name must be typed first"
            self.fill(f"Type {confirm} to confirm", confirm)
        self.find(submit).click()
        self.until(lambda: "Done." in self.find("//dialog").text, f"that {button!r} is done")
        self.click("Close")
        self.until(lambda: not self.driver.find_elements(By.TAG_NAME, "dialog"), "the end of the window")
        return command

    def sign_in(self, token):
        self.fill("Token", token, within="//body")
        self.click("Sign in")

    # ---- what must hold on every page ----

    def complaints(self):
        """What the browser has complained of since the last time, but for answers that are errors."""
        return [line["message"] for line in self.driver.get_log("browser")
                if line["level"] in ("SEVERE", "WARNING") and "Failed to load resource" not in line["message"]
                and "net::ERR" not in line["message"]]

    def check_page(self, name, axe=None, shots=None):
        """No complaints, nothing wider than the window, nothing that a screen reader cannot use."""
        assert self.complaints() == [], (name, self.complaints())
        size = self.driver.get_window_size()
        for width in (360, 1280):
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
            self.until(lambda: self.driver.execute_script(
                "return document.documentElement.scrollWidth <= window.innerWidth"), f"{name}: that {width} pixels are wide enough")
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.driver.set_window_size(size["width"], size["height"])
        if axe:
            for scheme in ("light", "dark"):
                # Where motion is not wanted, colours change at once.
                self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                            {"features": [{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}]})
                self.check_axe(name, axe)
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        if shots:
            self.driver.save_screenshot(str(pathlib.Path(shots) / f"{name}.png"))

    def check_axe(self, name, axe):
        if not self.driver.execute_script("return Boolean(window.axe)"):
            self.driver.execute_script(axe)
        found = self.driver.execute_async_script("""
            const done = arguments[0];
            axe.run(document, {resultTypes: ['violations']}).then((result) => done(result.violations.map((one) =>
                [one.id, one.impact, one.help, one.nodes.slice(0, 3).map((node) => node.html + ' | ' + node.failureSummary)])));""")
        assert found == [], f"{name}: {json.dumps(found, indent=1)}"
