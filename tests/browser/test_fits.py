"""The page that says what fits, in a browser: it evaluates the table as Python does, and shows what
it was asked."""

import random
from dataclasses import replace

import pytest
from common import ROOT, picked
from stepscope.formulas import fits
from stepscope.formulas.footprint import OPTIONS, Setup
from stepscope.formulas.options import TERMS, values
from stepscope.report.fits import document

DRAWN = "document.documentElement.dataset.drawn"
SETUPS = 200
LLAMA = "model=Llama 3.2 1B&card=RTX 4090"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("fits") / "fits.html"
    path.write_text(document(ROOT / "report"))
    return path


@pytest.fixture
def viewed(opened, page_file):
    def made(state="", width=1280, theme="light"):
        page = opened(f"{page_file.as_uri()}#{state}", width, theme)
        page.wait_for_function(DRAWN)
        return page

    return made


def made_up(chosen):
    """Any setup that has a closed form."""
    model = fits.model(chosen.choice(list(fits.KNOWN["models"])), {})
    options = {name: chosen.choice(values(name)) for name in OPTIONS}
    found = Setup(
        model,
        chosen.randint(1, 9),
        chosen.randint(1, 9000),
        checkpoint=chosen.choice([0, 0, 1, 2, 3, 5, 40]),
        devices=chosen.randint(1, 9),
        **options,
    )
    is_fp8 = "fp8" in found.flags
    return replace(found, compile="block") if is_fp8 else found


def for_the_page(setup):
    """A setup as the page's script has it: the sizes that do not follow from others."""
    follows = TERMS["dimensions"]
    sizes = {name: size for name, size in setup.sizes.items() if name not in follows}
    chosen = {name: getattr(setup, name) for name in OPTIONS}
    return chosen | {"sizes": sizes, "window": setup.shape.window}


def test_the_page_and_python_find_equal_bytes(viewed):
    chosen = random.Random(60)
    setups = [made_up(chosen) for _ in range(SETUPS)]
    page = viewed()
    found = page.evaluate(
        """setups => setups.map((setup) => {
            const peak = peakOf(setup);
            const sum = peak.tensors.reduce((total, each) => total + each.bytes, 0);
            const { bytes, phase, part } = peak;
            return [bytes, phase, part, sum, operationsOf(setup), takenOf(peak), wrongOf(setup)];
        })""",
        [for_the_page(setup) for setup in setups],
    )
    assert len(found) == SETUPS
    for setup, here in zip(setups, found, strict=True):
        size, phase, part, total, operations, taken, wrong = here
        moment = fits.peak_of(setup)
        assert (size, phase, part) == (moment.bytes, moment.phase, moment.part), setup
        assert total == size
        assert tuple(taken) == fits.taken(size, setup.flags)
        assert wrong == fits.wrong(setup)
        for one, other in zip(operations, fits.operations(setup), strict=True):
            assert one == [pytest.approx(other[0], rel=1e-12), other[1]]


def test_the_page_and_the_command_answer_alike(viewed):
    setup = Setup(
        fits.model("Llama 3.2 1B", {}), 1, 4096, "bf16", "sdpa", "8-bit", "torch", checkpoint=1
    )
    found = fits.answer(setup, fits.memory("RTX 4090"), "NVIDIA H200")
    page = viewed(f"{LLAMA}&optimizer=8-bit&checkpoint=1")
    assert page.get_attribute("#verdict", "data-is") == found["verdict"]
    shown = page.locator(".facts strong").all_inner_texts()
    for text, name in zip(shown, ("largest batch", "longest context"), strict=False):
        assert text == "{:,} ({:,} with doubt)".format(*found[name].values())
    slow, fast = found["tokens a second"]
    assert shown[3] == f"{float(f'{slow:.2g}'):,.0f} to {float(f'{fast:.2g}'):,.0f}"
    rows = page.locator("[aria-label='What makes room'] tbody tr")
    assert rows.locator("td:first-child").all_inner_texts() == picked(found["room"], "change")
    assert rows.locator("td:last-child").all_inner_texts() == [
        "{:,} ({:,})".format(*each["largest batch"].values()) for each in found["room"]
    ]


def test_changes_one_on_top_of_the_other(viewed):
    setup = Setup(fits.model("Llama 3.2 1B", {}), 1, 4096, "bf16", "sdpa", "fused", "torch")
    found = fits.together(setup, fits.memory("24GB"))
    assert fits.verdict(found[-1].bytes, fits.memory("24GB")) == fits.FITS
    page = viewed(LLAMA)
    links = page.locator("[aria-label='One on top of the other'] tbody a")
    assert links.all_inner_texts() == [each.label for each in found]
    links.last.click()
    page.wait_for_function("document.getElementById('verdict').dataset.is === 'fits'")


def test_what_is_chosen_is_in_the_address_and_comes_back(viewed):
    page = viewed(LLAMA)
    page.locator("#control-optimizer").select_option("8-bit")
    page.locator("#control-batch").fill("3")
    page.keyboard.press("Tab")
    page.wait_for_function("location.hash.includes('batch=3')")
    assert "optimizer=8-bit" in page.url
    again = viewed(page.url.partition("#")[2])
    assert again.locator("#control-optimizer").input_value() == "8-bit"
    assert again.locator("#control-batch").input_value() == "3"
    assert page.complaints == again.complaints == []


def test_a_change_is_a_link_that_the_keyboard_follows(viewed):
    page = viewed(LLAMA)
    change = page.get_by_role("link", name="8-bit AdamW").first
    change.focus()
    page.keyboard.press("Enter")
    # The controls follow the address, a moment later.
    page.wait_for_function("document.getElementById('control-optimizer').value === '8-bit'")
    assert "optimizer=8-bit" in page.url


def test_sizes_of_the_configuration_can_be_chosen(viewed):
    """nano has this project's vocabulary of 10,000, no other size's."""
    page = viewed("model=nano&context=64")
    assert page.locator("#control-model").input_value() == "nano"
    assert page.locator(".facts strong").nth(2).inner_text() == "3.61 million"


@pytest.mark.parametrize(
    "state, told",
    {
        "machine=zzz": "machine=zzz",
        "card=0": "card=0",
        "model=Llama 9": "model=Llama 9",
        "batch=NaN": "batch=NaN",
        "model=own numbers&num_heads=0": "num_heads=0",
        "precision=fp5&zzz=1": "precision=fp5, zzz=1",
    }.items(),
)
def test_what_an_address_cannot_say_is_left_out_and_told(viewed, state, told):
    page = viewed(f"{state}&checkpoint=1")
    assert page.locator("#ignored").inner_text() == f"Not understood, and left out: {told}."
    usual = viewed("checkpoint=1" + "&model=own numbers" * ("own" in state))
    assert page.locator("#verdict").inner_text() == usual.locator("#verdict").inner_text()
    assert "NaN" not in page.locator("#facts").inner_text() + page.locator("#found").inner_text()
    assert page.complaints == []


@pytest.mark.parametrize(
    "state, told",
    {
        "reserve=30": "Others hold all of the card's memory.",
        "model=GPT-2 124M": "context 4096: the model has 1024 positions",
        "devices=8": "devices 8: say a strategy, as fsdp",
        "precision=fp8": "precision fp8: say compile block; uncompiled it has no closed form",
        "model=own numbers&d_model=10": "d_model 10 is not divisible by num_heads 32",
    }.items(),
)
def test_what_no_step_can_be_is_said_instead_of_an_answer(viewed, state, told):
    page = viewed(state)
    assert page.locator("#verdict").inner_text() == told
    assert page.locator("#found").inner_text() == page.locator("#facts").inner_text() == ""
    assert page.complaints == []


def test_on_a_phone_the_answer_is_before_the_form(viewed):
    page = viewed(LLAMA, width=400)
    tops = [page.locator(f"#{name}").bounding_box()["y"] for name in ("facts", "controls", "found")]
    assert tops == sorted(tops)
    assert page.locator("#verdict").bounding_box()["y"] < 200


def test_own_numbers(viewed):
    page = viewed("model=own numbers&d_model=64&d_ff=128&num_layers=2&num_heads=4&vocab_size=100")
    assert page.locator("#control-d_model").input_value() == "64"
    assert "--size d_model=64,d_ff=128," in page.locator("pre").inner_text()


@pytest.mark.parametrize("theme, width", [("light", 1280), ("dark", 1280), ("light", 390)])
def test_everyone_can_read_it(viewed, violations, theme, width):
    page = viewed(LLAMA, width, theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []


def test_it_is_small_and_asks_for_nothing(page_file):
    text = page_file.read_text()
    assert len(text.encode()) <= 300_000
    assert "src=" not in text
    assert "@import" not in text
