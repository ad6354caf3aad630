"""What a change of the configuration makes stale: exactly the cells that it changes."""

import copy


def test_nothing_changed_nothing_to_do(project):
    plan = project.planned()
    assert (plan.cells, plan.others) == (set(), set())


def test_a_moved_project_has_nothing_to_do(project, tmp_path):
    project.folder = project.folder.rename(tmp_path / "moved elsewhere")
    plan = project.planned()
    assert (plan.cells, plan.others) == (set(), set())


def test_one_key_of_a_size_measures_that_size_again(project):
    project.configure(lambda config: config["sizes"]["beta"].update(d_ff=24))
    plan = project.planned()
    assert plan.cells == {project.BETA, project.SDPA}
    assert plan.others == project.REPORTING


def test_two_swapped_values_of_a_size_measure_it_again(project):
    project.configure(lambda config: config["sizes"]["alpha"].update(d_model=16, d_ff=32))
    plan = project.planned()
    assert plan.cells == {project.ALPHA, project.PROFILE, project.MEMORY} | project.WARMUPS | project.LADDERS
    assert plan.analyses == 2


def test_two_swapped_sizes_are_both_measured_again(project):
    def swap(config):
        sizes = config["sizes"]
        sizes["alpha"], sizes["beta"] = sizes["beta"], sizes["alpha"]

    project.configure(swap)
    assert project.planned().cells == project.RUN_THE_MODEL


def test_a_context_more_measures_the_new_cells_only(project):
    project.configure(lambda config: config["timing"]["grid"]["cpu"][0]["context"].append(4))
    plan = project.planned()
    assert plan.cells == {"timing/alpha/ctx4/fp32", "timing/beta/ctx4/fp32"}
    assert plan.others == project.REPORTING


def test_a_size_more_measures_the_new_cells_only(project):
    def add(config):
        config["sizes"]["gamma"] = copy.deepcopy(config["sizes"]["beta"])
        config["timing"]["grid"]["cpu"][0]["size"].append("gamma")

    project.configure(add)
    assert project.planned().cells == {"timing/gamma/ctx8/fp32"}


def test_a_size_in_no_grid_does_nothing(project):
    project.configure(lambda config: config["sizes"].update(gamma=dict(config["sizes"]["beta"])))
    plan = project.planned()
    assert (plan.cells, plan.others) == (set(), set())


def test_a_context_less_measures_nothing(project):
    project.configure(lambda config: config["timing"]["grid"]["cpu"].pop())
    plan = project.planned()
    assert plan.cells == set()
    assert plan.others == project.REPORTING


def test_axes_at_their_neutral_values_do_nothing(project):
    def add(config):
        for entry in config["timing"]["grid"]["cpu"]:
            entry.update(optimizer=["own"], repeat=[1], mode=["step"], batch=[config["model"]["batch"]])

    project.configure(add)
    plan = project.planned()
    assert (plan.cells, plan.others) == (set(), set())


def test_an_axis_more_measures_its_other_values_only(project):
    project.configure(lambda config: config["timing"]["grid"]["cpu"][0].update(repeat=[1, 2]))
    assert project.planned().cells == {f"{project.ALPHA}/repeat=2", f"{project.BETA}/repeat=2"}


def test_other_settings_of_one_study_measure_that_study_again(project):
    project.configure(lambda config: config["ceilings"]["cpu"].update(matmul_order=48))
    assert project.planned().cells == {project.MATMUL}
    project.configure(lambda config: config["ceilings"]["warmup"].update(cpu=0))
    assert project.planned().cells == project.CEILINGS
    project.configure(lambda config: config["profile"]["steps"].update(cpu=3))
    assert project.planned().cells == project.CEILINGS | project.PROFILES
    project.configure(lambda config: config["memory"]["steps"].update(cpu=2))
    assert project.planned().cells == project.CEILINGS | project.PROFILES | project.MEMORIES


def test_what_nsys_would_record_measures_no_profile_of_a_cpu_again(project):
    project.configure(lambda config: config["profile"].update(nsys={"trace": ["cuda", "nvtx", "osrt"]}))
    assert project.planned().cells == set()


def test_the_same_number_in_another_spelling_measures_nothing(project):
    def spell(config):
        config["timing"]["steps"]["cpu"].update(seconds=1.0, min=2.0)
        config["model"].update(batch=1.0)
        config["timing"]["grid"]["cpu"][0].update(context=[8.0])

    project.configure(spell)
    assert project.planned().cells == set()


def test_another_mark_of_noise_measures_nothing(project):
    project.configure(lambda config: config["timing"].update(noisy={"cpu": 0.5}))
    plan = project.planned()
    assert plan.cells == set()
    assert plan.others == project.REPORTING


def test_keys_in_another_order_do_nothing(project):
    def turned(value):
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return value

    def reorder(config):
        for key in list(config):
            config[key] = turned(config.pop(key))

    before = (project.folder / "config.yaml").read_text()
    project.configure(reorder)
    assert (project.folder / "config.yaml").read_text() != before
    plan = project.planned()
    assert (plan.cells, plan.others) == (set(), set())


def test_grids_in_another_order_measure_nothing(project):
    project.configure(lambda config: config["timing"]["grid"]["cpu"].reverse())
    plan = project.planned()
    assert plan.cells == set()
    assert plan.others <= project.REPORTING


def test_a_file_of_published_figures_makes_the_report_again_and_no_cell(project):
    mine = project.folder / "mine.csv"
    mine.write_text("source,gpu,study,quantity,value,unit\nme,T4,timing,time,1,s\n")
    project.configure(published=["mine.csv"])
    plan = project.planned()
    assert (plan.cells, plan.others) == (set(), {"gather_published", "write_report"})


def test_an_edited_published_figure_makes_the_report_again_and_no_cell(project):
    project.edit("report/published/flash-attention-3.csv", ",616,", ",617,")
    plan = project.planned()
    assert (plan.cells, plan.others) == (set(), {"gather_published", "write_report"})
