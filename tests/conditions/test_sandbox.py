"""Conditions in Python: off unless enabled, and unable to do harm."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from weft.conditions import BadExpression, EvaluationFailed, compile_condition, enable_python_sandbox, sandbox

BODY = "def evaluate(output, context):\n    "


def verdict(body: str, output: Any = None, **bound: Any) -> Any:
    condition = compile_condition({"python": BODY + body}, python=True)
    return condition.evaluate({"output": output, **bound}).value


def failure(body: str, output: Any = None) -> EvaluationFailed:
    with pytest.raises(EvaluationFailed) as caught:
        verdict(body, output)
    return caught.value


def test_python_is_rejected_unless_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox._Sandbox, "enabled", False)
    spec = {"python": BODY + "return True"}

    with pytest.raises(BadExpression, match="are not enabled"):
        compile_condition(spec)
    enable_python_sandbox()
    assert compile_condition(spec).evaluate({"output": 1}).value
    with pytest.raises(BadExpression, match="are not enabled"):
        compile_condition(spec, python=False)


def test_it_needs_the_shell_and_so_does_a_composite_with_it() -> None:
    spec = {"python": BODY + "return True"}

    assert compile_condition(spec, python=True).needs_sandbox
    assert compile_condition({"all": ["output.x > 1", {"not": spec}]}, python=True).needs_sandbox
    assert not compile_condition("output.x > 1").needs_sandbox


def test_it_sees_the_output_and_the_outputs_of_other_nodes() -> None:
    nodes = {"a": {"output": {"n": 2}}}

    assert verdict("return output['n'] > context['a']['output']['n']", {"n": 3}, nodes=nodes)
    assert verdict("return context.get('b') is None", nodes=nodes)
    assert verdict("return sum(x * 2 for x in output) == 12 and 'x'.upper() == 'X'", [1, 2, 3])


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ("return output > 1", {("output",)}),
        ("return context['a']['output'] == context.get('b', {})", {("output",), ("nodes", "a"), ("nodes", "b")}),
        ("return len(context) > 1", {("output",), ("nodes",)}),
        ("return context[output] > 1", {("output",), ("nodes",)}),
    ],
)
def test_only_the_nodes_that_the_code_names_need_be_loaded(body: str, paths: set[Any]) -> None:
    assert compile_condition({"python": BODY + body}, python=True).paths == paths


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1", "does not define `evaluate"),
        ("def evaluate(output):\n    return True", "does not define `evaluate"),
        ("async def evaluate(output, context):\n    return True", "does not define `evaluate"),
        ("def evaluate(output, context):\n    return (", "was never closed"),
        ("\0", "null bytes"),
        ("#" * 70_000, "65,536"),
        ("(" * 5_000, "too many nested parentheses"),
    ],
)
def test_code_that_is_none_is_refused_at_compile_time(code: str, said: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compile_condition({"python": code}, python=True)
    assert said in str(caught.value)


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(BadExpression) as caught:
        compile_condition({"python": "def evaluate(output, context):\n    return output +\n"}, python=True)
    (found,) = caught.value.errors
    assert (found.line, found.path) == (2, "python")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True: pass", "longer than 1000 ms"),
        ("return len('a' * 10**9) > 1", "more than 50 MB"),
        ("return 9**9**9 > 0", "more than 50 MB"),
        ("x = []\n    while True: x.append('a' * 10000)", "more than 50 MB"),
        ("return evaluate(output, context)", "recursion"),
        ("raise ValueError('no')", "ValueError: no"),
        ("return nope", "nope"),
        ("return 1", "returned int"),
        ("pass", "returned null"),
        ("return 'yes'", "returned string"),
    ],
)
def test_what_goes_wrong_is_told(body: str, said: str) -> None:
    assert said in failure(body).message


@pytest.mark.parametrize(
    "body",
    [
        "return open('/etc/passwd').read() != ''",
        "import os\n    return os.environ != {}",
        "import os\n    os.system('true')\n    return True",
        "import socket\n    socket.socket()\n    return True",
        "import subprocess\n    return True",
        "from pathlib import Path\n    return Path('/etc/passwd').read_text() != ''",
        "import urllib.request\n    return True",
        "return ().__class__.__bases__[0].__subclasses__() != []",
        "return __import__('os').getcwd() != ''",
        "return eval('open')('/etc/passwd') is not None",
    ],
)
def test_there_are_no_files_no_network_and_no_way_out(body: str) -> None:
    assert "the code failed" in failure(body).message


def test_limits_may_be_lowered_and_not_raised() -> None:
    spec = {"type": "python_sandbox", "code": BODY + "while True: pass", "timeout_ms": 100}
    with pytest.raises(EvaluationFailed, match="100 ms"):
        compile_condition(spec, python=True).evaluate({"output": 1})
    for name, value in (("timeout_ms", 1001), ("timeout_ms", 0), ("max_memory_mb", 51), ("max_memory_mb", "1")):
        with pytest.raises(BadExpression, match="an integer from 1"):
            compile_condition({**spec, "timeout_ms": 100, name: value}, python=True)


def test_one_evaluation_leaves_nothing_to_the_next() -> None:
    code = "seen = []\ndef evaluate(output, context):\n    seen.append(1)\n    return len(seen) == 1"
    condition = compile_condition({"python": code}, python=True)

    assert all(condition.evaluate({"output": 1}).value for _ in range(5))


def test_the_output_cannot_be_changed_from_inside() -> None:
    output = {"a": [1]}
    assert verdict("output['a'].append(2)\n    return len(output['a']) == 2", output)
    assert output == {"a": [1]}


def test_a_sleep_does_not_wait_and_prints_vanish(capfd: pytest.CaptureFixture[str]) -> None:
    assert verdict("import time\n    time.sleep(3_600)\n    print('secret')\n    return True")
    assert "secret" not in capfd.readouterr().out


def test_values_that_cannot_cross_are_failures() -> None:
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic
    for output in (cyclic, "\ud800"):
        assert "the code failed" in failure("return True", output).message
    assert verdict("return output > 2**190", 2**200)


def test_many_threads_share_the_workers() -> None:
    found: list[bool] = []
    condition = compile_condition({"python": BODY + "return output % 2 == 0"}, python=True)

    def work(first: int) -> None:
        found.extend(condition.evaluate({"output": first + n}).value == ((first + n) % 2 == 0) for n in range(20))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 120


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_process_that_used_it_ends_cleanly_and_a_fork_of_it_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"""
import os, sys
from weft.conditions import EvaluationFailed, compile_condition
condition = compile_condition({{"python": {BODY + "return output > 1"!r}}}, python=True)
assert condition.evaluate({{"output": 2}}).value
child = os.fork()
if child == 0:
    try:
        condition.evaluate({{"output": 2}})
    except EvaluationFailed as failed:
        sys.exit(7 if "fork" in str(failed) else 1)
    sys.exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert condition.evaluate({{"output": 2}}).value
""")
    command = [sys.executable, "-W", "ignore", str(program)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_script_that_prints_much_keeps_only_the_beginning() -> None:
    value, printed = sandbox.run_script("for _ in range(2_000):\n    print('x' * 100)\n7", {}, sandbox.SandboxLimits())

    assert value == 7
    assert len(printed) == sandbox.PRINTED_CHARS_MAX
