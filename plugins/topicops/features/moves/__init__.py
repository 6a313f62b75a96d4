"""Moves of replicas that run: steps that anybody can go on with, their throttles, and the commands and pages."""
