"""The words of Gapline as frozen values: what agents, reports and exports are written against.

Nothing in here touches a machine, a clock or a file. It imports the standard library and pydantic only.
"""
