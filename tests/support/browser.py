"""A stepper page in headless Chromium. Where Chromium or Selenium is missing, the tests are skipped aloud."""
import os
import shutil
import sys
import tempfile
from pathlib import Path

if not shutil.which("chromium") or not shutil.which("chromedriver"):
    print("SKIPPED: pages are tested in chromium by chromedriver; install both")
    sys.exit(77)
sys.path.append("/usr/lib/python3/dist-packages")  # for another Python than Debian's: python3-selenium is plain Python
try:
    from selenium import webdriver
except ImportError:
    print("SKIPPED: pages are tested by python3-selenium; install it")
    sys.exit(77)
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys  # noqa: F401, for the tests
from selenium.webdriver.support.select import Select

WIDTH, HEIGHT = 1280, 720
ROOT = Path(__file__).resolve().parent.parent.parent
SCREENSHOTS = Path(os.environ.get("FLASH_BUILD_DIR", ROOT / "build/cpu")) / "screenshots"
LOOK = (Path(__file__).resolve().parent / "look.js").read_text()


class Browser:
    """One Chromium for all pages: its start is the slow part."""

    def __init__(self):
        options = Options()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.resize(WIDTH, HEIGHT)
        self.folder = tempfile.TemporaryDirectory()
        self.pages = 0

    def quit(self):
        self.driver.quit()
        self.folder.cleanup()

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def screenshot(self, name):
        """Into the build folder. @returns the PNG's bytes"""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        png = self.driver.get_screenshot_as_png()
        (SCREENSHOTS / f"{name}.png").write_bytes(png)
        return png

    def open_text(self, html, address=""):
        self.pages += 1
        path = Path(self.folder.name) / f"page{self.pages}.html"
        path.write_text(html)
        return self.open(path, address)

    def open(self, path, address=""):
        self.driver.get("about:blank")  # so that a new address alone is a new start, too
        self.driver.get(f"file://{path}{address}")
        self.driver.execute_script(LOOK)
        return self

    # ---- what the page says

    def js(self, expression, *arguments):
        return self.driver.execute_script(f"return ({expression})", *arguments)

    def look(self, name, *arguments):
        """One of look.js."""
        return self.js(f"look.{name}(...arguments)", *arguments)

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def digest(self):
        return self.js("stepper.digest()")

    def count(self, view=0):
        return self.js(f"stepper.views[{view}].count")

    def text(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css).text

    def address(self):
        self.wait(0.4)  # it follows what is shown a little later
        return self.js("location.hash")

    def wait(self, seconds):
        self.driver.execute_async_script("setTimeout(arguments[1], 1000 * arguments[0])", seconds)

    # ---- what a person does

    def go(self, count):
        self.js("stepper.moveTo(stepper.active, arguments[0])", count)

    def press(self, *keys, shift=False):
        """On the page as a whole, no control has the focus."""
        self.js("document.activeElement.blur()")
        chain = ActionChains(self.driver)
        for key in keys:
            chain = chain.key_down(Keys.SHIFT).send_keys(key).key_up(Keys.SHIFT) if shift else chain.send_keys(key)
        chain.perform()

    def click(self, css, shift=False):
        element = self.driver.find_element(By.CSS_SELECTOR, css)
        chain = ActionChains(self.driver)
        (chain.key_down(Keys.SHIFT).click(element).key_up(Keys.SHIFT) if shift else chain.click(element)).perform()

    def type(self, css, text):
        element = self.driver.find_element(By.CSS_SELECTOR, css)
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(text, Keys.ENTER)

    def select(self, css, value):
        Select(self.driver.find_element(By.CSS_SELECTOR, css)).select_by_value(value)
