"""Scripts of users, in Lua and Ale: one protocol, compiled and cached, limited in steps, memory and time.

    script = compile_script("lua", "return {total = qty * price}", ["qty", "price"])
    script.call({"qty": 2, "price": 20})                     {"total": 40}; a single value is {"result": …}
    script.evaluate(…)  script.holds(…)                      the value itself; as a predicate
    await script.acall(…)                                    each beside an event loop
    evaluate_predicate("ale", "(> total 10)", {"total": 40})

Nothing a script does outlives its call or reaches anything but its inputs. It ends in a typed error whatever it tries:
`BadScript` when compiled, `ScriptFailed` or `LimitExceeded` when called.
"""

from weft.scripts.compiler import compile_script, evaluate_predicate
from weft.scripts.failures import BadScript, ScriptFailed
from weft.scripts.script import CompiledScript

__all__ = ["BadScript", "CompiledScript", "ScriptFailed", "compile_script", "evaluate_predicate"]
