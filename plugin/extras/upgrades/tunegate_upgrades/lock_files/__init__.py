"""Lock files as text: which packages they pin. Nothing of them is run, and no index is asked."""
