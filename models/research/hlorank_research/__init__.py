"""Research on hlorank's cost models: papers' architectures, comparisons, studies, test fixtures."""
