"""The `gapline` command: a group whose commands are imported when they are called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import ClassVar

import click

from gapline import __version__
from gapline.orchestrator.cli import garbage

_PACKAGE = "gapline.orchestrator.cli"
_INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_NOBODY_READS = 141  # 128 + SIGPIPE, likewise


class _Commands(click.Group):
    """Knows each command's module and one line about it, so that help needs no import."""

    lines: ClassVar[dict[str, tuple[str, str]]] = {
        "audit": ("audit", "Audit hosts and their GPU containers into a report."),
        "plan": ("plan", "Print every read an audit would make, before it is made."),
        "discover": ("discover", "List a host's GPUs and containers, and which use which."),
        "doctor": ("doctor", "Check reach, keys, privilege and tools of targets before an audit."),
        "trust": ("trust", "Show a host's key fingerprint and record it."),
        "rerun": ("rerun", "Run agents again and compare with the last run."),
        "replay": ("replay", "Judge a stored snapshot again; no machine needed."),
        "report": ("report", "Write a stored run as HTML or JSON."),
        "runbook": ("runbook", "Turn a run's remedies into one ordered plan of repair."),
        "agents": ("agents", "List the agents, or everything about one."),
        "explain": ("explain", "Say what a finding code means."),
        "demo": ("demo", "The worked example, over real SSH on loopback; no machine needed."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in self.lines:
            return None
        command = import_module(f"{_PACKAGE}.commands.{self.lines[cmd_name][0]}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"commands/{cmd_name} brings no click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.lines:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.lines, 1)
            hint = f" Did you mean {near[0]}?" if near else " See gapline --help."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.lines.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="gapline")
def app() -> None:
    r"""Find out why a GPU inference machine is slower than its hardware allows, and what to change first.

    \b
    gapline demo                          see what it does, no machine needed
    gapline audit root@pve1               audit a host and its GPU containers
    gapline rerun pair.device_chain       check one thing again after a fix

    Exit codes: 0 clean, 1 findings at or above --fail-on, 2 usage or configuration,
    3 something could not be audited, 4 a bug of ours.
    """


def main() -> None:
    """Run the command line and exit."""
    garbage.hardly_looked_for()
    try:
        code = app.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.Abort:
        click.echo("Interrupted.", err=True)
        code = _INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except KeyboardInterrupt:
        click.echo("Interrupted; nothing was left running on the targets.", err=True)
        code = _INTERRUPTED
    except (BrokenPipeError, SystemExit):  # click and rich end with 1, "findings", when the reader of a pipe has gone
        code = _NOBODY_READS
    except Exception as error:  # noqa: BLE001 - the last place where an error can be told to a person
        from gapline.orchestrator.cli.failure import tell

        code = tell(error)
    sys.exit(code if isinstance(code, int) else 0)
