"""This machine, as the simulator sees it."""

from __future__ import annotations

import json
from typing import Any

from . import _native

__all__ = ["this"]


def this() -> dict[str, Any]:
    """The CPUs, caches and nodes of this machine as they are, with hot bursts and what others
    displace in its caches measured in a tenth of a second, and all other costs assumed; each cost
    says where it comes from. For ``machine=`` of :func:`percid.sim.run`, changed or not.

    :raises OSError: if the system does not tell
    """
    return json.loads(_native.this_machine())
