"""NVIDIA's Xid codes: what each means and what NVIDIA says to do at once.

Codes and immediate actions are those of NVIDIA's "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com,
deploy/xid-errors), for Ampere and newer; codes that it calls unused are left out. The words are ours. Codes that
always come with another one, and say nothing by themselves, are followers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ORIGIN = "NVIDIA, Analyzing Xid Errors with the Xid Catalog (docs.nvidia.com/deploy/xid-errors)"


class Action(StrEnum):
    """NVIDIA's immediate actions, in groups that are judged alike."""

    IGNORE = "nothing"
    RESTART_APP = "restart the application"
    RESET = "reset the GPU"
    CONTAIN = "restart the application, and reset the GPU when convenient"
    DRAIN = "drain the GPU and reset it"
    POWER = "restart the machine, with power off in between"
    LINK = "follow the NVLink work-flow"
    CHECK = "look at cables and power"
    FOLLOW = "look at the Xid that came before"


@dataclass(frozen=True, slots=True)
class Xid:
    """One code."""

    meaning: str
    action: Action


def _all(codes: str, meaning: str, action: Action) -> dict[int, Xid]:
    return {int(code): Xid(meaning, action) for code in codes.split()}


XIDS: dict[int, Xid] = {
    **_all("8", "the GPU stopped processing", Action.RESTART_APP),
    **_all("11 25 32", "invalid or corrupted stream of commands", Action.RESTART_APP),
    **_all("13", "graphics engine exception", Action.RESTART_APP),
    **_all("31", "memory page fault on the GPU", Action.RESTART_APP),
    **_all("37 38 44 66 67", "error of driver or firmware that the GPU gets over", Action.IGNORE),
    **_all("39 40 41 70 71 72 75 76 77 85", "copy engine exception", Action.RESTART_APP),
    **_all("126 127 128 129 130 131 132 133 134 135", "copy engine exception", Action.RESTART_APP),
    **_all("43", "a process was stopped after an error of its own", Action.FOLLOW),
    **_all("45", "a process was removed from the GPU", Action.FOLLOW),
    **_all("46", "the GPU stopped processing", Action.RESET),
    **_all("48", "memory error that ECC could not correct", Action.DRAIN),
    **_all("54", "auxiliary power is not connected", Action.CHECK),
    **_all("60 68 82 83 84 86 88 89 96 97 98 139", "video engine exception", Action.RESTART_APP),
    **_all("99 100 101 102 103 104 105", "video engine exception", Action.RESTART_APP),
    **_all("62 169", "an internal microcontroller halted", Action.RESET),
    **_all("63", "a row of memory was replaced, or a page retired", Action.IGNORE),
    **_all("64", "a row of memory could not be replaced, or a page not retired", Action.DRAIN),
    **_all("69", "graphics engine class error", Action.RESTART_APP),
    **_all("74 144 145 146 147 148 149 150", "NVLink error", Action.LINK),
    **_all("136 155", "NVLink training failed or the link went down", Action.LINK),
    **_all("79", "the GPU has fallen off the bus", Action.POWER),
    **_all("80", "corrupted data was sent to the GPU", Action.RESTART_APP),
    **_all("92", "many memory errors that ECC corrected", Action.IGNORE),
    **_all("93 106 107 121 141 152 153", "message that needs no action", Action.IGNORE),
    **_all("94", "memory error that hit one application", Action.CONTAIN),
    **_all("95", "memory error that may have hit every application", Action.DRAIN),
    **_all("109", "context switch timed out", Action.RESET),
    **_all("110", "security fault", Action.RESET),
    **_all("119", "the GPU's system processor (GSP) did not answer", Action.RESET),
    **_all("120", "error in the GPU's system processor (GSP)", Action.RESET),
    **_all("108 137", "access over NVLink that was not allowed", Action.RESTART_APP),
    **_all("140", "memory error that was not recovered from", Action.RESET),
    **_all("143", "the GPU could not be initialised", Action.RESET),
    **_all("151", "rotation of keys failed", Action.RESET),
    **_all("154", "the driver changed what it asks for to recover", Action.FOLLOW),
    **_all("156", "a resource of the GPU was retired", Action.RESET),
    **_all("157", "a resource of the GPU could not be retired", Action.RESET),
    **_all("158 167", "fatal time-out", Action.RESET),
    **_all("160 161", "a channel was retired, or could not be", Action.IGNORE),
    **_all("171 172", "detail of an uncorrectable memory error", Action.FOLLOW),
}
