"""What the embedded agent told of itself while other software talked to it."""

from __future__ import annotations

from typing import Any

from connectors.agent import Agent
from tests.connectors.agent.talk import MANIFEST


def texts(agent: Agent) -> list[str]:
    """The words of each answer that the agent began, in order."""
    return [MANIFEST[record["answer"]]["text"] for record in agent.truth.records("response")]


def errors(agent: Agent) -> list[str]:
    """Codes of the errors that the agent answered with."""
    return [record["code"] for record in agent.truth.records("error")]


def written(agent: Agent) -> list[int]:
    """Samples that the agent wrote for each answer, in order of the answers."""
    sizes = {(record["conn"], record["response"]): 0 for record in agent.truth.records("response")}
    for record in agent.truth.records("write"):
        sizes[record["conn"], record["response"]] += record["samples"]
    return list(sizes.values())


def ends(agent: Agent) -> list[dict[str, Any]]:
    """How each answer ended."""
    return agent.truth.records("done")
