"""Judging answers with a language model: tasks, the published parsing rules, the client and its cache."""
