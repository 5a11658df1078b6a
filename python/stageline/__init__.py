"""Stageline in training programs: stageline.record writes when each job of a pipeline ran, on its device's own clock."""
