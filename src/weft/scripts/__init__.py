"""User scripts in Lua and Ale, compiled and cached, with limits on steps, memory and time.

    script = compile_script("lua", "return {total = qty * price}", ["qty", "price"])
    script.call({"qty": 2, "price": 20})                     {"total": 40}; a single value is {"result": …}
    script.evaluate(…)  script.holds(…)                      the value itself; whether it is true
    await script.acall(…)                                    the same in a thread
    evaluate_predicate("ale", "(> total 10)", {"total": 40})

A script keeps no state between calls and can access only its inputs. Compiling one raises ``BadScript``; calling one
raises ``ScriptFailed`` or ``LimitExceeded``.
"""

from weft.scripts.compiler import compile_script, evaluate_predicate
from weft.scripts.failures import BadScript, ScriptFailed
from weft.scripts.script import CompiledScript

__all__ = ["BadScript", "CompiledScript", "ScriptFailed", "compile_script", "evaluate_predicate"]
