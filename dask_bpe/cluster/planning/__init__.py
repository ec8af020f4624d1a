"""What a job will take before it begins: a sample is measured, a model fitted, a cluster simulated."""
