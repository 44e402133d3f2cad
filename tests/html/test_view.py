"""What a report says, before it is HTML: pure functions of a run."""

from __future__ import annotations

import pytest

from gapline.orchestrator.model.finding import Effect, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import Run, TargetKind, Times, Verdict
from gapline.reports.diff import Kind, diff_lines
from gapline.reports.prose import Piece, prose
from gapline.reports.svg.bar import bar
from gapline.reports.svg.concurrency import concurrency
from gapline.reports.svg.timeline import WIDTH, axis, strip
from gapline.reports.view.answer import Answer
from gapline.reports.view.evidence import no_context
from gapline.reports.view.fact import Row, fact_view
from gapline.reports.view.page import page
from gapline.reports.visible import clipped, visible
from tests.html.fleet import fleet
from tests.html.pve_b import AWAY, CT, HOST, OTHER, STALE, STOPPED, pve_b
from tests.html.runs import DIFF, config_around, finding, outcome, run, target


def answer(whole: Run) -> Answer:
    """The head of a run's page."""
    return page(whole, no_context).answer


def lone(*findings: object, **fields: object) -> Run:
    """A run of one host with one outcome."""
    status = Status.FOUND if findings else Status.PASSED
    host = target("pve1", TargetKind.LINUX_HOST)
    return run((host,), (outcome("pve1", "host.x", status, **({"findings": findings} | fields)),))


class TestVisible:
    """Characters that could mislead a reader."""

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a\x00b", "a␀b"),
            ("\x1b[31m", "␛[31m"),
            ("x\u202etxt.exe", "x⟨U+202E⟩txt.exe"),
            ("\ud800", "⟨U+D800⟩"),
            ("a\tb\nc", "a\tb\nc"),
            ("Grüße 漢字 🙂", "Grüße 漢字 🙂"),
        ],
    )
    def test_shapes(self, text: str, shown: str) -> None:
        """What has no shape gets one, what has one keeps it."""
        assert visible(text) == shown

    def test_cut_text_says_so(self) -> None:
        """A reader of a cut text knows how much is missing."""
        assert clipped("a" * 1_500, 10) == "a" * 10 + "… (1,490 more characters)"


class TestTexts:
    """Sentences and diffs."""

    def test_commands_in_sentences(self) -> None:
        """What stands between backticks is a command; a lone backtick is itself."""
        assert prose("Run `a -b` now") == (
            Piece("Run ", code=False),
            Piece("a -b", code=True),
            Piece(" now", code=False),
        )
        assert prose("a ` b") == (Piece("a ` b", code=False),)
        assert prose("") == ()

    def test_diff_kinds(self) -> None:
        """Signs are read within hunks only, so that a removed `-- x` is no file name."""
        kinds = [line.kind for line in diff_lines(DIFF)]
        assert kinds[:3] == [Kind.FILE, Kind.FILE, Kind.PLACE]
        assert kinds.count(Kind.ADD) == 3
        assert kinds.count(Kind.REMOVE) == 2
        assert [line.kind for line in diff_lines("@@ -1 +1 @@\n--- x\n+++ y")] == [Kind.PLACE, Kind.REMOVE, Kind.ADD]
        assert diff_lines("") == ()


class TestAnswer:
    """The first sentence is never better than the run."""

    def test_blocked(self) -> None:
        """A critical finding that stops work says where."""
        assert answer(pve_b()).headline == f"Work is blocked on {CT}."

    def test_clean(self) -> None:
        """Only a run in which everything was answered says that nothing was found without a limit."""
        assert answer(lone()).headline == "Nothing was found, and every question had an answer."

    def test_partly_seen(self) -> None:
        """An unknown answer limits the sentence."""
        blind = outcome("pve1", "host.y", Status.UNKNOWN, problem=Problem(kind=ProblemKind.DENIED, detail="no"))
        whole = lone()
        whole = run(whole.targets, (*whole.outcomes, blind))
        assert answer(whole).headline == "Nothing was found in what could be seen; 1 question had no answer."

    def test_nothing_ran(self) -> None:
        """A run without answers is not called clean."""
        assert answer(run((), ())).headline == "Nothing could be audited."

    def test_waived_critical_is_not_the_answer(self) -> None:
        """A waived finding does not make the headline."""
        waived = finding(
            "pve1", "a.b", "x", severity=Severity.CRITICAL, effect=Effect.BREAKS, settled_by="", waived=True
        )
        assert "blocked" not in answer(lone(waived)).headline

    def test_distance_is_never_invented(self) -> None:
        """Without ceiling and rate the page says so, and sends nobody to a command that this version does not have."""
        text = "".join(piece.text for piece in answer(pve_b()).distance)
        assert "not known" in text
        assert "gapline " not in text
        half = pve_b().model_copy(update={"ceiling": {"tokens_per_s": 309.0}})
        assert "no rate was measured" in "".join(piece.text for piece in answer(half).distance)
        assert answer(half).ceiling is not None

    def test_all_five_layers(self) -> None:
        """A layer that the run does not mention was not tested."""
        assert [layer.verdict for layer in answer(lone()).layers] == [Verdict.NOT_TESTED] * 5

    def test_first_names_each_code_once(self) -> None:
        """The same fault on many machines is one thing to do first, with the number of further places."""
        first = answer(fleet(9)).first
        assert [one.title for one in first] == ["CUDA cannot start", "The CPU governor is schedutil"]
        assert first[0].also == 3


class TestFindings:
    """Ranking, grouping, evidence."""

    def test_order(self) -> None:
        """Worst first, waived last."""
        cards = list(page(pve_b(), no_context).cards)
        assert cards[0].code == STALE.code
        assert [card.waived for card in cards] == [False] * (len(cards) - 1) + [True]

    def test_equal_findings_share_a_card(self) -> None:
        """Four GPUs with one remedy are one card with four places."""
        card = next(card for card in page(pve_b(), no_context).cards if card.code == "pcie.read_request")
        assert len(card.instances) == 4
        assert card.where.startswith(f"{HOST} · 0000:01:00.0, ")

    def test_context_is_marked(self) -> None:
        """Lines around are there and are not taken for cited ones."""
        card = next(iter(page(pve_b(), config_around).cards))
        config = card.instances[0].excerpts[1]
        assert [line.number for line in config.lines] == [6, 7, 8, 9, 10]
        assert [line.number for line in config.cited] == [8]

    def test_lowered_severity_keeps_its_base(self) -> None:
        """A reader sees the rule and the reason."""
        card = next(card for card in page(pve_b(), no_context).cards if card.code == "limits.memlock")
        assert card.base_severity is Severity.HIGH
        assert "CAP_IPC_LOCK" in card.severity_reason

    def test_verify_quotes_names(self) -> None:
        """A command to copy is one command, whatever a target is called."""
        odd = finding("pve1", "a.b", "x")
        host = target("a; rm -rf b", TargetKind.LINUX_HOST)
        whole = run((host,), (outcome(host.id, "host.x", Status.FOUND, findings=(odd,)),))
        card = next(iter(page(whole, no_context).cards))
        assert card.instances[0].verify == "gapline rerun host.numa_balancing --target 'a; rm -rf b'"

    def test_double_fingerprints_get_two_anchors(self) -> None:
        """Two findings that a foreign agent gave one fingerprint stay apart."""
        twin = finding("pve1", "a.b", "x")
        other = twin.model_copy(update={"observed": "2"})
        instances = [each for card in page(lone(twin, other), no_context).cards for each in card.instances]
        assert len({each.anchor for each in instances}) == 2


class TestSides:
    """Host and containers."""

    def test_disagreement_has_both_lines(self) -> None:
        """What the host says and what the container says stand opposite each other."""
        one = next(iter(page(pve_b(), no_context).comparisons))
        both = one.disagreements[0]
        assert both.host_says[0].lines[0].text == "511 nvidia-uvm"
        assert both.container_says[0].lines[0].text == "lxc.cgroup2.devices.allow: c 509:* rwm"

    def test_columns(self) -> None:
        """The host comes first; a container that is not audited has no column."""
        columns = [column.target for column in next(iter(page(pve_b(), no_context).comparisons)).columns]
        assert columns[0] == HOST
        assert OTHER not in columns
        assert STOPPED in columns


class TestUnseen:
    """What could not be seen."""

    def test_grouped_by_what_helps(self) -> None:
        """One step that answers many questions stands once, with everything it answers."""
        groups = page(pve_b(), no_context).unseen
        assert [group.agents for group in groups] == [4, 2, 0]
        assert [row.target for row in groups[2].rows] == [AWAY]

    def test_unseen_parts_of_a_finding_count(self) -> None:
        """What an agent did not see besides a finding is listed too."""
        part = Problem(kind=ProblemKind.TIMED_OUT, detail="nvidia-smi", hint="")
        groups = page(lone(finding("pve1", "a.b", "x"), unseen=(part,)), no_context).unseen
        assert groups[0].label == "timed out"
        assert groups[0].hint == ()


class TestFacts:
    """Facts in words."""

    def test_values_and_tables(self) -> None:
        """Nested names are dotted, unknown is a word, equal records are a table."""
        view = fact_view({"a": {"b": None, "c": True}, "d": [{"x": 1, "y": 2.50}, {"x": 3}]})
        assert view is not None
        assert view.rows == (Row("a.b", "unknown"), Row("a.c", "yes"))
        assert view.tables[0].rows == (("1", "2.5"), ("3", ""))

    def test_long_facts_say_what_is_missing(self) -> None:
        """Nothing is left out silently."""
        view = fact_view({f"k{number}": number for number in range(400)})
        assert view is not None
        assert view.more == 100

    def test_what_does_not_fit_is_not_laid_out(self) -> None:
        """A fact that takes more than there is room for is left out, one that just fits is not."""
        fact = {"a": "<&>", "b": [{"c": 1}, {"c": 2}]}
        view = fact_view(fact)
        assert view is not None
        assert fact_view(fact, view.size) == view
        assert fact_view(fact, 100) is None


class TestCharts:
    """Geometry."""

    def test_bar_is_full(self) -> None:
        """Segments touch and fill the bar; nothing counts nothing."""
        segments = bar({"a": 1, "b": 0, "c": 2})
        assert [(one.start, one.width) for one in segments] == [(0, 333), (333, 667)]
        assert bar({"a": 0}) == ()

    def test_concurrency(self) -> None:
        """Agents that overlap are counted together."""
        entries = [outcome("a", f"host.{n}", times=Times(planned=0.0, collected=n + 1.0, judged=9.0)) for n in range(3)]
        assert concurrency(entries, axis(entries)).peak == 3
        assert concurrency([], axis([])).peak == 0

    def test_strip_of_what_never_came(self) -> None:
        """An agent whose sources never arrived is drawn until it was judged, and marked."""
        entry = outcome("a", "host.x", times=Times(planned=0.0, collected=None, judged=4.0))
        drawn = strip(entry, axis([entry]))
        assert not drawn.arrived
        assert (drawn.start, drawn.width) == (0, WIDTH)

    def test_merged_results_do_not_stretch_the_axis(self) -> None:
        """Seconds of an earlier run say nothing about this one."""
        old = outcome("a", "host.x", age=3, times=Times(planned=0.0, collected=900.0, judged=901.0))
        new = outcome("a", "host.y", times=Times(planned=0.0, collected=1.0, judged=1.0))
        assert axis([old, new]).seconds == 1.0
