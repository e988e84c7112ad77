"""Lock files as text: the packages they pin. Nothing of them is run, and no index is asked."""
