"""Rivals that add up functions of few inputs."""
