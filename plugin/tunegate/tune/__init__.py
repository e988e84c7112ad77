"""The tuning loop, its workers, its budget, the filter, the cost model and the prior."""
