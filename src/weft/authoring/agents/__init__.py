"""Agents: the workflow ``weft.agent``, and how a program declares and calls an agent.

agent  declaration  offered   what a program says
reply                         what an agent gives
workflow  turns               the loop
model_calls  outputs          a turn's model call, and what its answer is worth
tool_calls  approval          one branch of a turn: find, bind, ask, perform, result
compaction                    shorter conversations
operations                    recorded operations that the loop uses and ``Context`` does not have
"""
