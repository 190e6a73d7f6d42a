"""Plan and goal over the whole way: the call, the row, the event, the state; branches, reopening, compaction."""

import json
from pathlib import Path

from tests.e2e.harness import PYTHON_HEAD, run_zutd, write_extension
from tests.e2e.talking import Checked, Json, calls, of, rows, said, scripted, text, types


def plan(*steps: tuple[str, str], **more: str) -> tuple[str, Json]:
    """A call that updates the plan."""
    return "update_plan", {"plan": [{"step": step, "status": status} for step, status in steps], **more}


def goal(status: str, **more: str) -> tuple[str, Json]:
    """A call that updates the goal."""
    return "update_goal", {"status": status, **more}


FIRST, LATER = (
    plan(("look", "in_progress")),
    plan(("look", "completed"), ("mend", "in_progress"), explanation="found it"),
)
STEPS = {"first": FIRST[1]["plan"], "later": LATER[1]["plan"]}


def test_a_plan_is_kept_told_and_shown(tmp_path: Path) -> None:
    """The row is on record before the event, the event comes before the result, the state has the whole plan."""
    with Checked(tmp_path, env=scripted(tmp_path, calls(LATER), text("ok"))) as daemon:
        assert daemon.call("get_state")["plan"] is None
        frames = daemon.prompt("go")
        (told,) = of(frames, "plan_update")
        assert (told["plan"], told["explanation"]) == (STEPS["later"], "found it")
        order = types(frames)
        assert order.index("tool_execution_started") < order.index("plan_update") < order.index("tool_result")
        (result,) = of(frames, "tool_result")
        assert (told["id"], said(result), result["is_error"]) == (result["id"], "Plan updated", False)
        state = daemon.call("get_state")
        assert state["plan"] == {"plan": STEPS["later"], "explanation": "found it"}
        kept = [row for row in rows(state["session"]["path"]) if row["type"] in ("plan", "message")]
        assert [row["type"] for row in kept] == ["message", "message", "plan", "message", "message"]
        assert kept[2]["value"] == state["plan"]


def test_f19_a_goal_that_the_model_is_offered_is_handled_in_every_mode(tmp_path: Path) -> None:
    """Wherever ``update_goal`` is among the tools its call is kept and told, with a file or without; else it is not."""
    env = scripted(tmp_path, calls(goal("active", objective="ship")), text("done"))
    held = {"objective": "ship", "status": "active"}
    for mode in ("-p", "--stream", "--json"):
        run = run_zutd(tmp_path, mode, "go", env=env)
        assert run.returncode == 0
        with Checked(tmp_path, "--continue") as daemon:
            assert daemon.call("get_state")["goal"] == held
    (told,) = of(map(json.loads, run.stdout.splitlines()), "goal_update")
    assert (told["objective"], told["status"]) == ("ship", "active")
    with Checked(tmp_path, "--no-session", env=env) as daemon:
        assert "update_goal" in [tool["name"] for tool in daemon.call("get_tools")["tools"]]
        daemon.prompt("go")
        assert daemon.call("get_state")["goal"] == held
    with Checked(tmp_path, "--tools", "read", env=env) as daemon:
        assert "update_goal" not in [tool["name"] for tool in daemon.call("get_tools")["tools"]]
        (result,) = of(daemon.prompt("go"), "tool_result")
        assert "unknown tool" in said(result)
        assert daemon.call("get_state")["goal"] is None


def test_a_goal_makes_nothing_go_on_by_itself(tmp_path: Path) -> None:
    """A turn with an active goal ends when the model ends it: one prompt, one answer, no further request."""
    script = scripted(tmp_path, calls(goal("active", objective="ship")), text("Not yet."), text("never said"))
    with Checked(tmp_path, env=script) as daemon:
        frames = daemon.prompt("go")
        assert [frame["step"] for frame in of(frames, "turn_start")] == [1, 2]
        assert of(frames, "done")[0]["outcome"] == "ok"
        assert not daemon.call("get_state")["busy"]


def test_a_branch_has_the_plan_of_its_place(tmp_path: Path) -> None:
    """A fork before an update has the older plan, switching back the later one, clear none; also after reopening."""
    script = scripted(tmp_path, calls(FIRST), text("a"), calls(LATER, goal("active", objective="ship")), text("b"))
    with Checked(tmp_path, env=script) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        whole = daemon.call("get_state")
        daemon.call("fork", at=4)
        state = daemon.call("get_state")
        assert (state["plan"]["plan"], state["goal"]) == (STEPS["first"], None)
        daemon.call("switch_branch", branch=whole["branch"])
        state = daemon.call("get_state")
        assert (state["plan"]["plan"], state["goal"]["objective"]) == (STEPS["later"], "ship")
        daemon.kill()
    with Checked(tmp_path, "--continue") as daemon:
        state = daemon.call("get_state")
        assert (state["plan"], state["goal"]) == (whole["plan"], whole["goal"])
        daemon.call("clear")
        assert daemon.call("get_state")["plan"] is None


def test_plan_and_goal_survive_a_compaction(tmp_path: Path) -> None:
    """They stay in the state, and the model is reminded of them where its own calls are no longer shown."""
    script = scripted(
        tmp_path,
        calls(LATER, goal("active", objective="ship")),
        text("word " * 30_000),
        text("the summary"),
        text("I go on."),
    )
    with Checked(tmp_path, env=script) as daemon:
        before = (daemon.prompt("one"), daemon.call("get_state"))[1]
        daemon.call("compact")
        done = daemon.event("compact_done")
        assert "- [in_progress] mend" in done["summary"]
        assert "Your goal (active): ship" in done["summary"]
        daemon.event("done")
        after = daemon.call("get_state")
        assert (after["plan"], after["goal"]) == (before["plan"], before["goal"])
        daemon.prompt("go on")


def test_a_guard_may_refuse_an_update_but_not_rewrite_it(tmp_path: Path) -> None:
    """A plan that the model did not write is nobody's plan: rewriting is an error result, and nothing is kept."""
    program = PYTHON_HEAD + (
        'hello("guard")\nemit(type="subscribe", intercept=["tool_call"])\nemit(type="ready")\n'
        "answers = [dict(modified_args={'plan': []}), dict(block=True, reason='no plans'), {}]\n"
        "for frame in frames():\n"
        '    if frame["type"] == "event_intercept":\n'
        '        emit(type="event_intercept_response", id=frame["id"], **answers.pop(0))\n'
    )
    extension = str(write_extension(tmp_path / "x", "guard", program))
    script = scripted(tmp_path, calls(FIRST), calls(FIRST), calls(FIRST), text("ok"))
    with Checked(tmp_path, "--ext", extension, env=script) as daemon:
        daemon.ready("guard")
        results = of(daemon.prompt("go"), "tool_result")
        assert [said(result) for result in results] == [
            "tool arguments cannot be rewritten",
            "no plans",
            "Plan updated",
        ]
        assert len(of(daemon.frames, "plan_update")) == 1


def test_a_plan_of_another_program_is_no_plan(tmp_path: Path) -> None:
    """A row whose value is not of our form is kept, and the state says that there is none."""
    with Checked(tmp_path, env=scripted(tmp_path, calls(FIRST), text("ok"))) as daemon:
        daemon.prompt("go")
        path = Path(daemon.call("get_state")["session"]["path"])
        assert daemon.finish() == 0
    last = rows(path)[-1]
    row = {"type": "plan", "n": last["n"] + 1, "parent": last["n"], "time": last["time"], "value": ["what now"]}
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    with Checked(tmp_path, "--continue") as daemon:
        assert daemon.call("get_state")["plan"] is None
        assert daemon.prompt("hello")[-1]["outcome"] == "ok"
