"""Measuring this project against what a user could pick instead."""
