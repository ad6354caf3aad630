"""Kernels of other packages: refused where they are not, and given operands as they take them."""

import sys
from types import SimpleNamespace

import pytest
import torch
import written_out
from common import one_line
from stepscope.axes import IMPLEMENTATIONS
from stepscope.measure.attention import function
from stepscope.measure.models import Unsupported
from stepscope.model import attention, rivals
from stepscope.model.chosen import load

RIVALS = {"fa3": "flash-attn-3", "fa4": "flash-attn-4", "flex_flash": "flash-attn-4"}


@pytest.mark.parametrize("name", RIVALS)
def test_without_a_gpu_it_is_one_line(name):
    said = f"{RIVALS[name]} runs on a GPU only"
    assert attention.unsupported(name, torch.device("cpu"), 64) == said
    (own,) = [each for each, one in IMPLEMENTATIONS.items() if one.module == name]
    with pytest.raises(Unsupported, match=said):
        function(own, "cpu")


@pytest.mark.parametrize("own, said", [((8, 0), "needs compute capability 9.0"), ((9, 0), None)])
def test_an_older_gpu_is_refused(own, said, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: own)
    found = rivals.Rival("json", "a package").unsupported(torch.device("cuda"), None)
    assert (said in found) if said else found is None


@pytest.mark.parametrize("module", ["nowhere_to_be_found", "nowhere_to_be_found.below"])
def test_a_package_that_is_not_there_is_named(module):
    found = rivals.Rival(module, "flash-attn-9").unsupported(torch.device("cuda"), None)
    assert found == "flash-attn-9 is not installed"


def flash_attn_func(q, k, v, causal, window_size=(-1, -1)):
    """As the packages' own: (batch, length, heads, d_head), a causal mask that ends at the last
    key, window_size keys before a query; the logarithms of the sums beside the result."""
    q, k, v = (x.transpose(1, 2).double() for x in (q, k, v))
    output, sums = written_out.attention(q, k, v, causal, window_size[0] + 1, lower_right=True)
    return output.transpose(1, 2), sums


@pytest.mark.parametrize("name", ["fa3", "fa4"])
@pytest.mark.parametrize(
    "heads, keys, is_causal, more",
    [
        ((4, 4), 9, False, {}),
        ((4, 2), 6, True, {}),
        ((4, 1), 6, True, {"window": 3}),
    ],
)
def test_operands_and_masks_are_those_of_naive_attention(
    name, heads, keys, is_causal, more, monkeypatch
):
    module = SimpleNamespace(flash_attn_func=flash_attn_func)
    monkeypatch.setitem(sys.modules, load("attention", name).RIVAL.module, module)
    torch.manual_seed(0)
    q, *of_keys = (torch.randn(3, 2, heads[0], max(keys, 6), 8)).bfloat16()
    given = (q[:, :, :6], *(x[:, : heads[1], :keys] for x in of_keys))
    found = load("attention", name).attention(*given, is_causal, **more)
    right = load("attention", "naive").attention(*(x.double() for x in given), is_causal, **more)
    torch.testing.assert_close(found.double(), right, rtol=1e-2, atol=1e-2)


def test_what_they_do_not_take_is_one_line():
    attend = load("attention", "fa4").attention
    q = torch.zeros(1, 2, 4, 8)
    assert "not torch.float32" in one_line(ValueError, attend, q, q, q, True)
    low = q.bfloat16()
    assert "as many queries as keys" in one_line(
        ValueError, attend, low, low[:, :, :3], low[:, :, :3], True
    )
