"""A scope for the job from the systemd manager that made ours.

In version 2 a group that holds other processes can hand no memory down, and a terminal's group holds the shell. The
manager may make another one beside it, which is ours to divide. The relay stays where it was, so that the login's group
does not become empty while the job runs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast.actions.job_cgroups import Groups, below, bring_in, group_of, make_groups, remove_groups
from holdfast.actions.scope_rules import USER_SLICE, socket_of
from holdfast.actions.systemd_manager import Manager, Refused

PATIENCE_S = 1.0  # the watcher's, the script runs already; systemd took 18 to 34 ms
LOOK_EVERY_S = 0.002  # for the scope to appear
ROUNDS = 5  # of moving processes: some are forked meanwhile


def move_into_scope(
    former: Groups, folder: str, top: str, *, name: str, script_pid: int, run: Path = Path("/run")
) -> tuple[Groups, str]:
    """The groups in a scope of its own with the job in them, or `former` and why. `top` is where the tree is mounted.

    First we enter it, and then fetch the job: should the manager be late, nothing of the job moves unasked.
    """
    uid, us, unit = os.geteuid(), os.getpid(), f"holdfast-{name}.scope"
    slices = USER_SLICE.search(folder)
    groups, reason = Groups(), "the job had ended"
    try:
        with Manager(PATIENCE_S) as manager:
            manager.greet(socket_of(uid, run))
            slice_name = slices[1] if uid == 0 and slices is not None else ""
            manager.start_scope(unit, [us], "A job under Holdfast", slice_name)
            while not group_of(us).endswith(f"/{unit}"):
                if manager.left_s <= 0:
                    return former, "the scope was not made in time"
                time.sleep(LOOK_EVERY_S)
            groups = make_groups(2, {"memory": top + group_of(us)}, name, us)
            if "memory" in groups.folders:
                reason = _fetch(manager, groups, unit, script_pid) or reason
            else:
                reason = "the scope hands no memory down"
    except (OSError, Refused) as error:
        reason = str(error) or type(error).__name__
    if "memory" not in groups.folders or not groups.folders["memory"].endswith(group_of(script_pid) or "?"):
        remove_groups(groups)
        return former, reason
    remove_groups(former)
    return groups, ""


def _fetch(manager: Manager, groups: Groups, unit: str, script_pid: int) -> str:
    """Out of a login's group only the manager may fetch it, out of a desktop terminal's the user may. Why not, if not."""
    below_unit = "/" + groups.folders["memory"].rpartition("/")[2]
    reason = ""
    for _ in range(ROUNDS):
        bring_in(groups, script_pid)
        outside = [pid for pid in {script_pid} | below(os.getpid()) if f"/{unit}/" not in group_of(pid)]
        if not outside:
            break
        for pid in outside:
            try:
                manager.attach(unit, below_unit, [pid])
            except Refused as error:  # it may have ended meanwhile
                reason = str(error)
    return reason
