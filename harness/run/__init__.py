"""Measuring: pacer, capture, runner, suites, calibration, replay."""
