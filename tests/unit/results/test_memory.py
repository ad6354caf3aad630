"""Predictions of memory beside what a snapshot recorded.

The model: d_model 8, d_ff 16, 2 layers, 2 heads, vocabulary 11, context 6, batch 3. Its parameters,
by hand: 2 x 11 x 8 + 2 x (4 x 8 x 8 + 3 x 8 x 16 + 2 x 8) + 8 = 1,496.
"""

import pandas as pd
from stepscope.formulas import footprint_peak
from stepscope.formulas.footprint import Setup
from stepscope.model.shape import ModelShape
from stepscope.results import cells as reading
from stepscope.results import writing

from tests.unit.results.cells import sample

NAME = "lab/memory/tiny/ctx6/fp32"
SPEC = {
    "d_model": 8,
    "d_ff": 16,
    "num_layers": 2,
    "num_heads": 2,
    "vocab_size": 11,
    "context": 6,
    "batch": 3,
}
SPEC |= {"precision": "fp32"}
PARAMETERS, WORKSPACE = 1496, 64 * 2**20  # of cuBLAS on a GPU, for two threads
ABOUT = {"baselines": {"model": 7000, "start": 20000}, "recorded": "measured steps"}
SAVED = """part,module,op,shape,dtype,category,tensors,bytes
block,a,mul,3×2×6×6,float32,activations,2,1728
block,b,to,8×8,bfloat16,cast weights,1,999
rest,c,mul,,,activations,1,100
"""
ANALYSIS = {
    "memory_saved": SAVED,
    "memory_peak": "category,bytes,blocks\nparameters,5984,20\nactivations,1000,3\nunknown,0,0\n",
    "memory_largest": (
        "bytes,count,alive,category,module,shape,dtype\n"
        # The second is a view of a larger tensor.
        "864,1,1,activations,blocks.*/attention/softmax,3×2×6×6,float32\n"
        "1728,1,1,unknown,,3×2×6×6,float32\n"
    ),
    "memory_timeline": "time,phase,cast_weights\n0,forward,0\n1,forward,30\n2,backward,20\n",
}


def recorded(results, name=NAME, about=ABOUT, summary=None, **spec):
    summary = {"memory": about} | (summary or {})
    results.add(name, SPEC | spec, summary=summary, analysis=ANALYSIS)


def tables_of(results):
    found, samples, _ = reading.read(results.plan(), results.folder)
    made, _ = writing.tables(found, samples, [])
    return {
        name: rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        for name, rows in made.items()
    }


def test_all_that_is_alive_at_the_predicted_peak_adds_up_to_it(results):
    recorded(results)
    by_category = tables_of(results)["memory_peak"].set_index("category")["predicted"]
    assert by_category["parameters"] == 4 * PARAMETERS
    assert pd.isna(by_category["unknown"])
    setup = Setup(ModelShape(8, 16, 2, 2, 11), batch=3, context=6)
    peak = footprint_peak.peak(setup, "step")
    activations = [each for each in peak.contributions if each.category == "activations"]
    assert by_category["activations"] == sum(each.bytes for each in activations)


def test_peaks_are_series_recorded_and_predicted(results):
    recorded(results)
    got = tables_of(results)["series"].set_index("quantity")["median"]
    assert (got["peak_asked"], got["model_bytes"], got["start_bytes"]) == (6984, 7000, 20000)
    setup = Setup(ModelShape(8, 16, 2, 2, 11), 3, 6)
    assert got["peak_predicted"] == footprint_peak.peak(setup, "step").bytes


def test_on_a_gpu_libraries_hold_a_workspace_for_each_thread(results):
    results.add("lab/timing/tiny/ctx6/fp32", SPEC, [sample()])
    results.add("gpu/timing/tiny/ctx6/fp32", SPEC | {"device": "cuda"}, [sample()])
    rows = tables_of(results)["series"].query("quantity == 'peak_predicted'")
    of_machine = rows.pivot(index="mode", columns="machine", values="median")
    more = of_machine["gpu"] - of_machine["lab"]
    assert more["step"] == more["forward-backward"] == WORKSPACE
    assert more["inference"] == more["forward"] == WORKSPACE / 2


def test_a_compiler_has_no_prediction_and_checkpoints_have_a_lower_one(results):
    rungs = [
        {"name": "plain"},
        {"name": "compile", "compile": "block"},
        {"name": "every", "checkpoint": 1},
    ]
    spec = {name: value for name, value in SPEC.items() if name != "precision"} | {
        "variants": rungs,
        "context": 64,
    }
    results.add("lab/ladder/tiny/ctx64", spec, [sample("plain")])
    rows = (
        tables_of(results)["series"]
        .query("quantity == 'peak_predicted'")
        .set_index("variant")["median"]
    )
    assert set(rows.index) == {"plain", "every"}
    assert rows["every"] < rows["plain"]


def test_sizes_get_their_formula(results):
    recorded(results)
    tables = tables_of(results)
    assert tables["memory_largest"]["formula"].tolist() == [
        "batch × heads × context × context × 4 B",
        "",
    ]
    assert tables["memory_saved"]["formula"][0] == "batch × heads × context × context × 4 B"


def test_a_step_in_8_bits_has_no_closed_form(results):
    """What it keeps in 8 bits is not in the form: no number rather than a wrong one."""
    results.add("lab/timing/tiny/ctx6/fp8", SPEC | {"precision": "fp8"}, [sample()])
    results.add("lab/timing/tiny/ctx6/bf16", SPEC | {"precision": "bf16"}, [sample()])
    recorded(results, "lab/memory/tiny/ctx6/fp8", precision="fp8")
    series = tables_of(results)["series"].query("quantity == 'peak_predicted'")
    assert set(series["precision"]) == {"bf16"}
