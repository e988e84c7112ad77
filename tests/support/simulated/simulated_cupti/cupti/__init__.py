"""A CUPTI that is only said to be there: it permits everything and knows of no
kernels but those it is told of."""
