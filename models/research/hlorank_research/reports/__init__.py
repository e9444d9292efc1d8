"""SVG plots (``plots``) of comparisons and studies."""
