"""TVM and nothing else: import, layouts, schedules, search, builds."""
