"""The statistics, the checks of a model on a target, and the verdict. All of it is pure."""
