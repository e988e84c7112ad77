"""A headless Chromium without network, for looking at pages as readers do."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.support.programs import MissingProgramsError

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
)


@contextmanager
def browser(profile: Path) -> Iterator[webdriver.Chrome]:
    """Skips the test where no Chromium or no driver is installed."""
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise MissingProgramsError([*(() if chromium else ("chromium",)), "chromedriver"])
    options = webdriver.ChromeOptions()
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def show(chrome: webdriver.Chrome, page: Path, *, width: int, scheme: str = "light") -> None:
    """Load a page at that width in CSS pixels, in the light or the dark scheme."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})
    chrome.get(page.as_uri())


def requests(chrome: webdriver.Chrome) -> list[str]:
    """The addresses asked for since the last time, but for those of the browser's own start page,
    which may still be loading."""
    entries = chrome.get_log("performance")  # type: ignore[no-untyped-call]  # selenium's
    messages = [json.loads(entry["message"])["message"] for entry in entries]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
        and not message["params"]["documentURL"].startswith("chrome://")
    ]
