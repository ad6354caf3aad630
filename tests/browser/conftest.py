"""A browser for the tests of the pages; without one, or what drives it, they are skipped."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield made
        made.close()


@pytest.fixture
def opened(browser):
    """Opens an address as a reader does: width in pixels, and his theme. `complaints` are errors,
    and what is loaded from elsewhere."""
    contexts = []

    def made(address, width=1280, theme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(error.message))
        page.on(
            "request",
            lambda request: request.url.startswith("file:") or page.complaints.append(request.url),
        )
        page.goto(address)
        return page

    yield made
    for context in contexts:
        context.close()


@pytest.fixture
def violations():
    """What axe finds of a page: (rule, where, impact)."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    return lambda page: [
        (each["id"], each["nodes"][0]["html"][:160], each["impact"])
        for each in axe.run(page).response["violations"]
    ]
