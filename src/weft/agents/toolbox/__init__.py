"""The tools that Weft has itself: pipelines over tables, results by reference, and a search for tools.

definitions   the tools as models see them
calls         what a call means before it is performed: its effect, and the tool behind ``call_tool``
results       keep results, read them again, and show their beginning
shapes        pipelines with holes: which are alike, and what a stored one takes
stored        tools that were made of pipelines
search        find a tool by words
bodies        the steps that perform the tools
"""
