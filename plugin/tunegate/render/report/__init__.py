"""Parts of the HTML report: each plot with its title, and a sentence on what to see in it."""
