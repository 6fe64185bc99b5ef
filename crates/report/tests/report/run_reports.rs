//! Reports of runs: what they say about a sprint with a merged story and one that waits, for a terminal, as a document, as JSON.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::{
    answer::ChoiceKey,
    decision::DecisionChoice,
    event::ParentRun,
    ids::{AgentName, CommitId, DecisionId, Key, RunId, TreeId},
    limits::{Cost, LimitShare, UsageTotals},
    reason::RunReason,
};
use tribunal_report::{
    Screen,
    run_report::{ReportSources, ReportVerdict, RunReport, build_report},
    tables::{self, RunDetails, RunStanding},
};
use tribunal_testkit::samples;
use tribunal_workflows::{
    development::{
        changes::ChangeSize,
        checks::{CheckSpec, CommandLine},
        concerns::LandingConcern,
        frozen_work::VerifiedWork,
        workspace::TargetBranch,
    },
    findings::{counts::FindingCounts, finding::Severity, reported_finding::LeftFindings, subject::Subject},
    review::order::{ReviewOrder, ReviewSummary},
    runs::{
        effect::Reply,
        kinds::{RunOrder, WorkflowSummary, WorkflowTopic},
        settings::Settings,
        types::{ChildOutcome, ChildReport, Decision, DecisionTopic, RunEvent, RunSummary},
        view::RunView,
    },
    sprint::{
        event::SprintEvent,
        order::SprintOrder,
        selection::{LeftOut, LeftOutReason},
        standing::StoryStanding,
    },
    story::{
        event::{SessionOutcome, SessionReport, StoryEvent},
        facts::{StoryFollowUp, StoryName},
        order::{StoryOrder, StoryReviewMode, StoryStepName, StoryTopic},
    },
};

use crate::journals::{journal_of, run_started};

const SPRINT: &str = "sprint-k3f9";
const MERGED: &str = "story-1-2-sift-a1";
const WAITING: &str = "story-1-3-pack-b1";
const REVIEW: &str = "change-c1";

fn checks() -> Vec<CheckSpec> {
    vec![CheckSpec::new(CommandLine::from_shell_line("make test"))]
}

fn started(order: impl Into<RunOrder>, parent: Option<(&str, &str)>) -> RunEvent {
    let settings = Settings { checks: checks(), ..Settings::default() };
    let parent = parent.map(|(run, name)| ParentRun {
        run: RunId::new(run),
        root: RunId::new(SPRINT),
        name: name.into(),
        depth: 1,
    });
    run_started(settings, order, parent)
}

/// What a run used.
struct Spending {
    tokens: u64,
    cost: f64,
    elapsed_ms: u64,
}

fn summary(reason: RunReason, detail: &str, result: WorkflowSummary, spending: Spending) -> RunSummary {
    RunSummary {
        outcome: reason.outcome(),
        reason,
        detail: detail.into(),
        result,
        cost: Cost::from_amount(spending.cost),
        notional: Cost(0),
        tokens: spending.tokens,
        elapsed_ms: spending.elapsed_ms,
        left: None,
        causes: Vec::new(),
    }
}

/// What the workflow of these events would say at its end.
fn result_of(run_id: &str, events: &[RunEvent]) -> WorkflowSummary {
    RunView::from_entries(&journal_of(run_id, events.to_vec())).build_result().unwrap()
}

fn story_order(key: &str, title: &str) -> StoryOrder {
    let story = StoryName { title: title.into(), ..StoryName::from_key(key) };
    StoryOrder::new(story, TargetBranch { name: "main".into(), created_at: None })
}

fn child_started(name: &str, child: &str) -> RunEvent {
    RunEvent::ChildStarted { key: Key::new(name), name: name.into(), child: RunId::new(child) }
}

fn session(session: u32, outcome: SessionOutcome) -> RunEvent {
    let report = SessionReport {
        outcome,
        agent: Some(AgentName::new("sample")),
        problems: Vec::new(),
        remarks: Vec::new(),
        fault: String::new(),
        changed_files: 3,
        claim: String::new(),
    };
    RunEvent::from_workflow(StoryEvent::StorySession { session, step: StoryStepName::Develop, report })
}

/// The second session did it; the checks pass, a review found something, and a Makefile was changed.
fn merged_story() -> RunView {
    let follow_up = StoryFollowUp { severity: Severity::Low, text: "the name is vague".into(), place: String::new() };
    let mut events = vec![
        started(story_order("1-2-sift", "A | *b*"), Some((SPRINT, "story-1-2-sift"))),
        RunEvent::from_workflow(StoryEvent::StoryPrepared {
            path: "/clone".into(),
            base: CommitId::new("0000000000aaaa"),
            remarks: Vec::new(),
        }),
        session(1, SessionOutcome::Incomplete),
        RunEvent::EffectFinished {
            key: Key::new("develop-2/checks"),
            segment: 1,
            reply: samples::passed_checks_reply(&checks()),
        },
        session(2, SessionOutcome::Completed),
        child_started("review-1", REVIEW),
        RunEvent::from_workflow(StoryEvent::StoryReviewed {
            review: RunId::new(REVIEW),
            critical: 0,
            follow_ups: vec![follow_up],
            detail: "no critical finding".into(),
        }),
        RunEvent::from_workflow(StoryEvent::StoryLanded {
            commit: CommitId::new("1a2b3c4d5e6f"),
            branch: "main".into(),
            checkout_moved: true,
            in_the_way: Vec::new(),
            changed_controls: vec!["Makefile".into()],
            concerns: vec![LandingConcern::DeletedTest { path: "tests/old_test.sh".into() }],
            verified: Some(VerifiedWork::new(TreeId::new("7e6d5c4b3a29"), true)),
        }),
        warned("a commit hook changed src/a.rs"),
        warned("a commit hook changed src/a.rs"),
    ];
    let spending = Spending { tokens: 31_000, cost: 0.31, elapsed_ms: 245_000 };
    let result = result_of(MERGED, &events);
    events.push(RunEvent::RunFinished(summary(RunReason::GoalMet, "the story is done", result, spending)));
    RunView::from_entries(&journal_of(MERGED, events))
}

fn review_of_merged_story() -> RunView {
    let findings = FindingCounts { total: 3, fixed: 2, open: 1, ..FindingCounts::default() };
    let result = WorkflowSummary::Review(ReviewSummary { rounds: 1, findings });
    let spending = Spending { tokens: 9_000, cost: 0.1, elapsed_ms: 20_000 };
    let events = vec![
        started(ReviewOrder::new(Subject::from_path("plan.md", None)), Some((MERGED, "review-1"))),
        RunEvent::RunFinished(summary(RunReason::GoalMet, "", result, spending)),
    ];
    RunView::from_entries(&journal_of(REVIEW, events))
}

fn waiting_story() -> RunView {
    let choice = |key: ChoiceKey, label: &str| DecisionChoice { key, label: label.into() };
    let decision = Decision {
        id: DecisionId::new("D1"),
        about: DecisionTopic::Limit,
        owner: "the user".into(),
        question: "How to go on\nwith <b>?".into(),
        choices: vec![choice(ChoiceKey::Agent, "ask another agent"), choice(ChoiceKey::Skip, "skip the story")],
        answer: None,
    };
    let mut events = vec![
        started(story_order("1-3-pack", ""), Some((SPRINT, "story-1-3-pack"))),
        RunEvent::DecisionPosted { decision },
    ];
    let spending = Spending { tokens: 21_000, cost: 0.0, elapsed_ms: 10_000 };
    let result = result_of(WAITING, &events);
    events.push(RunEvent::RunParked(summary(RunReason::Blocked, "5 sessions failed", result, spending)));
    RunView::from_entries(&journal_of(WAITING, events))
}

fn sprint() -> RunView {
    let story_left = |story: &str, standing: StoryStanding, child: &str| {
        RunEvent::from_workflow(SprintEvent::SprintStoryLeft {
            story: story.into(),
            standing,
            detail: "as its run says".into(),
            child: Some(RunId::new(child)),
        })
    };
    let share = LimitShare { runtime_ms: 1_000, cost: Cost(1), tokens: 1 };
    let order = SprintOrder::new(story_order("", ""), share);
    let left_out = LeftOut { story: "1-4-sell".into(), reason: LeftOutReason::Needs { story: "1-3-pack".into() } };
    let mut events = vec![
        started(order, None),
        child_started("story-1-2-sift", MERGED),
        story_left("1-2-sift", StoryStanding::Done, MERGED),
        child_started("story-1-3-pack", WAITING),
        story_left("1-3-pack", StoryStanding::Waiting, WAITING),
        RunEvent::from_workflow(SprintEvent::SprintLeftOut { stories: vec![left_out] }),
    ];
    let spending = Spending { tokens: 52_000, cost: 0.4, elapsed_ms: 30_000 };
    let result = result_of(SPRINT, &events);
    let detail = "1 story waits for you: 1-3-pack";
    events.push(RunEvent::RunParked(summary(RunReason::Blocked, detail, result, spending)));
    RunView::from_entries(&journal_of(SPRINT, events))
}

fn report_on(run_view: &RunView) -> RunReport {
    report_with(run_view, false)
}

fn report_with(run_view: &RunView, is_discarded: bool) -> RunReport {
    let children = [merged_story(), waiting_story(), review_of_merged_story()];
    let sources = ReportSources {
        read_run: &|run_id: &RunId| children.iter().find(|view| view.run_id.as_ref() == Some(run_id)).cloned(),
        read_change_size: &|_: &CommitId| Some(ChangeSize { files: 3, added: 40, removed: 2 }),
        is_in_history: &|_: &CommitId| false,
        has_branch: &|_: &str| true,
        checkout: Some("main"),
        program_name: "tribunal",
        is_discarded,
    };
    build_report(&RunStanding { run_view, is_live: false }, &sources)
}

#[test]
fn the_text_has_a_block_for_each_story_and_what_waits() {
    insta::assert_snapshot!(report_on(&sprint()).to_text(&Screen::default()), @"
    sprint-k3f9 waiting · sprint of all open stories
      your decision is needed (1 story waits for you: 1-3-pack)
      1 story done, 1 waiting, 1 left out · 3 files, +40 -2 · 52k tokens · $0.40 · 0:30 · started 2026-11-15 14:47 UTC

    ✓ 1-2-sift A | *b*
      merged on main as 1a2b3c4d5e; 1 check passed on tree 7e6d5c4b3a, also in a fresh clone; 2 findings fixed, 1 left for later
      look at: the work deletes tests: tests/old_test.sh (you accepted that)
      look at: it changed what checks, hooks or later agents are told to run (Makefile)
      look at: 1 of 2 sessions not completed; the log says why
      3 files, +40 -2 · 2 sessions, 1 not completed · 31k tokens · $0.31 · 4:05
        git show 1a2b3c4d5e
        tribunal diff story-1-2-sift-a1
        tribunal findings change-c1
        tribunal log story-1-2-sift-a1

    ? 1-3-pack
      waits for you: your decision is needed (5 sessions failed)
      21k tokens · 0:10
        tribunal log story-1-3-pack-b1

    left out
      1-4-sell depends on 1-3-pack, which is not done

    waiting for you
      ? story-1-3-pack-b1.D1 (1-3-pack): How to go on with <b>?
        agent: ask another agent
        skip: skip the story
        answer: tribunal decisions story-1-3-pack-b1.D1 ANSWER

    warnings
      story-1-2-sift-a1: a commit hook changed src/a.rs (2 times)

      next: tribunal resume sprint-k3f9
    ");
}

#[test]
fn nothing_is_wider_than_the_screen() {
    let screen = Screen { max_columns: Some(60), ..Screen::default() };
    let text = report_on(&sprint()).to_text(&screen);
    for line in text.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn the_document_explains_itself_and_shows_foreign_text_as_text() {
    insta::assert_snapshot!(report_on(&sprint()).to_markdown(), @r"
    # Sprint report: all open stories

    The run `sprint-k3f9` is **waiting**: your decision is needed (1 story waits for you: 1-3-pack).
    1 story done, 1 waiting, 1 left out · 3 files, +40 -2.
    Started 2026-11-15 14:47:00 UTC; it took 0:30 and used 52k tokens ($0.40).

    | Story | Verdict | Commit | Changes | Checks | Findings | Cost | Time |
    |:--|:--|:--|:--|:--|:--|--:|--:|
    | 1-2-sift: A &#124; \*b\* | merged | `1a2b3c4d5e` | 3 files, +40 -2 | 1 passed | 2 fixed, 1 left for later | $0.31 | 4:05 |
    | 1-3-pack | waiting |  |  |  |  |  | 0:10 |

    ## 1-2-sift: A &#124; \*b\*

    merged on main as 1a2b3c4d5e; 1 check passed on tree 7e6d5c4b3a, also in a fresh clone; 2 findings fixed, 1 left for later.

    - **Look at:** the work deletes tests: tests/old\_test.sh (you accepted that)
    - **Look at:** it changed what checks, hooks or later agents are told to run (Makefile)
    - **Look at:** 1 of 2 sessions not completed; the log says why
    - Commit: `1a2b3c4d5e` on `main`: 3 files, +40 -2
    - Work of agents: 2 sessions, 1 not completed
    - Check `make test`: passed
    - Review: 2 findings fixed, 1 left for later
    - 1 follow-up in the story's file
    - It took 4:05 and used 31k tokens ($0.31)

    To look closer:

    ```text
    git show 1a2b3c4d5e
    tribunal diff story-1-2-sift-a1
    tribunal findings change-c1
    tribunal log story-1-2-sift-a1
    ```

    ## 1-3-pack

    waits for you: your decision is needed (5 sessions failed).

    - It took 0:10 and used 21k tokens

    To look closer:

    ```text
    tribunal log story-1-3-pack-b1
    ```

    ## Waiting for you

    ### `story-1-3-pack-b1.D1` about 1-3-pack

    How to go on with &lt;b&gt;?

    Answer with `tribunal decisions story-1-3-pack-b1.D1 ANSWER`, where `ANSWER` is one of:

    - `agent`: ask another agent
    - `skip`: skip the story

    ## Left out

    These open stories were not begun.

    - 1-4-sell depends on 1-3-pack, which is not done

    ## Warnings

    - story-1-2-sift-a1: a commit hook changed src/a.rs (2 times)

    ## Next

    ```text
    tribunal resume sprint-k3f9
    ```
    ");
}

#[test]
fn the_document_for_programs_has_the_same_facts() {
    let document = serde_json::to_value(report_on(&sprint())).unwrap();
    assert_eq!(document["schema"], "tribunal.report/1");
    assert_eq!((&document["state"], &document["exit_code"]), (&"waiting".into(), &3.into()));
    let story = &document["stories"][0];
    assert_eq!((&story["verdict"], &story["commit"]), (&"merged".into(), &"1a2b3c4d5e6f".into()));
    assert_eq!((&story["checks"][0]["passed"], &story["change"]["added"]), (&true.into(), &40.into()));
    assert_eq!((&story["findings"]["fixed"], &story["findings"]["open"]), (&2.into(), &0.into()));
    assert_eq!(document["waiting"][0]["id"], "story-1-3-pack-b1.D1");
    assert_eq!((&document["totals"]["done"], &document["totals"]["left_out"]), (&1.into(), &1.into()));
}

#[test]
fn a_discarded_run_says_so_and_asks_nothing() {
    let report = report_with(&sprint(), true);
    let text = report.to_text(&Screen::default());
    let head: Vec<&str> = text.lines().take(3).collect();
    insta::assert_snapshot!(head.join("\n"), @r"
    sprint-k3f9 waiting, discarded · sprint of all open stories
      your decision is needed (1 story waits for you: 1-3-pack)
      you discarded this run: it waits for nothing, and cannot be resumed
    ");
    let next_step = "  next: tribunal discard --restore sprint-k3f9  (take it out of the trash)\n";
    assert!(text.ends_with(next_step) && !text.contains("ANSWER"), "{text}");
    let document = report.to_markdown();
    assert!(document.contains("\nYou have **discarded** it: "), "{document}");
    assert!(document.contains("\ntribunal discard --restore sprint-k3f9 "), "{document}");
    let json = serde_json::to_value(report).unwrap();
    assert_eq!((&json["discarded"], json["waiting"].as_array().map(Vec::len)), (&true.into(), Some(0)));
    assert_eq!(serde_json::to_value(report_on(&sprint())).unwrap()["discarded"], false);
}

#[test]
fn a_long_title_is_cut() {
    let title = format!("{}\u{1b}[2J{}", "審査 ".repeat(100), "word ".repeat(100));
    let events = vec![started(story_order("1-2-sift", &title), None), session(1, SessionOutcome::Incomplete)];
    let report = report_on(&RunView::from_entries(&journal_of(MERGED, events)));
    let text = report.to_text(&Screen::default());
    let title_line = text.lines().find(|line| line.contains("1-2-sift 審査")).unwrap();
    assert!(title_line.ends_with('…') && title_line.chars().count() < 80, "{title_line}");
    assert!(text.lines().all(|line| line.chars().count() < 200) && !text.contains('\u{1b}'), "{text}");
    let document = report.to_markdown();
    let heading = document.lines().find(|line| line.starts_with("## 1-2-sift: 審査")).unwrap();
    assert!(heading.ends_with('…') && heading.chars().count() <= 3 + 10 + 120, "{heading}");
    // Programs get all of it.
    assert_eq!(serde_json::to_value(report).unwrap()["stories"][0]["title"], title);
}

#[test]
fn a_story_and_a_review_have_reports_of_their_own() {
    let merged = report_on(&merged_story());
    assert_eq!((merged.head.exit_code, merged.stories.len(), merged.totals), (0, 1, None));
    assert_eq!(merged.stories[0].verdict, ReportVerdict::Merged);
    let waiting = report_on(&waiting_story());
    assert_eq!((waiting.head.exit_code, waiting.waiting.len()), (3, 1));
    let review = report_on(&review_of_merged_story());
    assert_eq!((review.head.exit_code, review.stories.len()), (0, 0));
    assert_eq!(review.result.unwrap().findings.unwrap().fixed, 2);
}

#[test]
fn a_run_that_is_worked_on_is_no_failure_and_one_that_crashed_is() {
    let events = vec![started(story_order("1-2-sift", ""), None), session(1, SessionOutcome::Incomplete)];
    let run_view = RunView::from_entries(&journal_of(MERGED, events));
    let sources = ReportSources {
        read_run: &|_: &RunId| None,
        read_change_size: &|_: &CommitId| None,
        is_in_history: &|_: &CommitId| false,
        has_branch: &|_: &str| true,
        checkout: Some("main"),
        program_name: "tribunal",
        is_discarded: false,
    };
    let report_with = |is_live: bool| build_report(&RunStanding { run_view: &run_view, is_live }, &sources);
    let running = report_with(true);
    assert_eq!((running.head.exit_code, running.stories[0].verdict), (0, ReportVerdict::Running));
    let crashed = report_with(false);
    assert_eq!((crashed.head.exit_code, crashed.stories[0].verdict), (5, ReportVerdict::Stopped));
}

const OWN_BRANCH: &str = "tribunal/story-1-2-sift-a1";
const OWN_DETAIL: &str = "commit 1a2b3c4d5e; your uncommitted changes are in the way (a.txt), so the work is on the branch \
                          tribunal/story-1-2-sift-a1: take it with `git merge tribunal/story-1-2-sift-a1`";

fn landed(commit: &str, branch: &str) -> RunEvent {
    RunEvent::from_workflow(StoryEvent::StoryLanded {
        commit: CommitId::new(commit),
        branch: branch.into(),
        checkout_moved: false,
        in_the_way: Vec::new(),
        changed_controls: Vec::new(),
        concerns: Vec::new(),
        verified: None,
    })
}

fn warned(text: &str) -> RunEvent {
    RunEvent::Warned { text: text.into() }
}

fn story_on_own_branch() -> RunView {
    let mut events = vec![
        started(story_order("1-2-sift", ""), None),
        session(1, SessionOutcome::Completed),
        landed("1a2b3c4d5e6f", OWN_BRANCH),
    ];
    let spending = Spending { tokens: 31_000, cost: 0.31, elapsed_ms: 245_000 };
    let result = result_of(MERGED, &events);
    events.push(RunEvent::RunFinished(summary(RunReason::OnOwnBranch, OWN_DETAIL, result, spending)));
    RunView::from_entries(&journal_of(MERGED, events))
}

/// A sprint whose only story came back for this reason.
fn sprint_with_child(reason: RunReason, detail: &str, has_ended: bool) -> RunView {
    let share = LimitShare { runtime_ms: 1_000, cost: Cost(1), tokens: 1 };
    let child_report = ChildReport {
        run: RunId::new(MERGED),
        outcome: reason.outcome(),
        reason,
        detail: detail.into(),
        used: UsageTotals::default(),
        worked_ms: 0,
        result: LeftFindings::default(),
    };
    let outcome = if has_ended { ChildOutcome::Ended(child_report) } else { ChildOutcome::Waiting(child_report) };
    let mut events = vec![
        started(SprintOrder::new(story_order("", ""), share), None),
        child_started("story-1-2-sift", MERGED),
        RunEvent::EffectFinished { key: Key::new("story-1-2-sift"), segment: 1, reply: Reply::RunChild(outcome) },
        RunEvent::from_workflow(SprintEvent::SprintStoryLeft {
            story: "1-2-sift".into(),
            standing: StoryStanding::Waiting,
            detail: detail.into(),
            child: Some(RunId::new(MERGED)),
        }),
    ];
    let spending = Spending { tokens: 52_000, cost: 0.4, elapsed_ms: 30_000 };
    let result = result_of(SPRINT, &events);
    events.push(RunEvent::RunParked(summary(RunReason::Blocked, "1 story waits for you: 1-2-sift", result, spending)));
    RunView::from_entries(&journal_of(SPRINT, events))
}

fn report_on_own_branch(run_view: &RunView, is_merged: bool) -> RunReport {
    let sources = ReportSources {
        read_run: &|_: &RunId| Some(story_on_own_branch()),
        read_change_size: &|_: &CommitId| None,
        is_in_history: &|_: &CommitId| is_merged,
        has_branch: &|_: &str| true,
        checkout: Some("main"),
        program_name: "tribunal",
        is_discarded: false,
    };
    build_report(&RunStanding { run_view, is_live: false }, &sources)
}

#[test]
fn work_on_its_own_branch_waits_until_the_user_has_merged_it() {
    let sprint_view = sprint_with_child(RunReason::OnOwnBranch, OWN_DETAIL, true);
    let waiting = report_on_own_branch(&sprint_view, false);
    let totals = waiting.totals.unwrap();
    assert_eq!((totals.done, totals.waiting, waiting.head.exit_code), (0, 1, 3));
    assert!(waiting.next[0].starts_with(&format!("git merge {OWN_BRANCH} ")), "{:?}", waiting.next);
    assert_eq!(waiting.next[1], "tribunal resume sprint-k3f9");
    let merged = report_on_own_branch(&sprint_view, true);
    let totals = merged.totals.unwrap();
    assert_eq!((totals.done, totals.waiting, merged.head.exit_code), (1, 0, 0));
    let text = merged.to_text(&Screen::default());
    assert!(text.contains("  merged as 1a2b3c4d5e; you took it from its own branch "), "{text}");
    assert!(!text.contains("git merge"), "{text}");
}

/// The report of a story whose work landed on this branch, with what git says about it.
fn report_in_place(branch: &str, is_merged: bool, has_branch: bool) -> RunReport {
    let mut order = story_order("1-2-sift", "");
    order.branch.name = "night".into();
    let mut events = vec![started(order, None), session(1, SessionOutcome::Completed), landed("1a2b3c4d5e6f", branch)];
    let spending = Spending { tokens: 0, cost: 0.0, elapsed_ms: 10_000 };
    let result = result_of(MERGED, &events);
    let reason = if branch == "night" { RunReason::GoalMet } else { RunReason::OnOwnBranch };
    events.push(RunEvent::RunFinished(summary(reason, "the story is done", result, spending)));
    let run_view = RunView::from_entries(&journal_of(MERGED, events));
    let sources = ReportSources {
        read_run: &|_: &RunId| None,
        read_change_size: &|_: &CommitId| None,
        is_in_history: &|_: &CommitId| is_merged,
        has_branch: &|_: &str| has_branch,
        checkout: Some("main"),
        program_name: "tribunal",
        is_discarded: false,
    };
    build_report(&RunStanding { run_view: &run_view, is_live: false }, &sources)
}

#[test]
fn work_on_a_branch_that_the_user_named_says_how_to_take_it_and_that_it_was_taken() {
    let waiting = report_in_place("night", false, true);
    let remark = "it is not on main yet: take it with `git merge night`";
    assert!(waiting.stories[0].look_at.contains(&remark.to_string()), "{:?}", waiting.stories[0].look_at);
    assert!(waiting.next.iter().any(|step| step.starts_with("git merge night ")), "{:?}", waiting.next);
    assert_eq!(waiting.head.exit_code, 0);
    let merged = report_in_place("night", true, false);
    assert!(merged.stories[0].sentence.starts_with("merged on night as 1a2b3c4d5e, and on main since; "));
    assert!(!merged.to_text(&Screen::default()).contains("git merge"));
}

#[test]
fn a_branch_that_is_gone_is_not_offered_for_a_merge() {
    for branch in ["night", OWN_BRANCH] {
        let report = report_in_place(branch, false, false);
        let text = report.to_text(&Screen::default());
        let remark = format!("the branch {branch} is gone; the work was commit 1a2b3c4d5e");
        assert!(text.contains(&remark) && !text.contains("git merge"), "{text}");
    }
}

#[test]
fn a_branch_is_not_offered_once_the_board_says_that_its_story_is_done() {
    let mut run_view = sprint_with_child(RunReason::OnOwnBranch, OWN_DETAIL, true);
    let first_step = |run_view: &RunView| {
        tribunal_report::suggest_next_steps(&RunStanding { run_view, is_live: false }, "tribunal").remove(0)
    };
    assert!(first_step(&run_view).starts_with(&format!("git merge {OWN_BRANCH} ")));
    tribunal_report::apply_taken_work(&mut run_view, &|_| tribunal_report::TakenState::Merged);
    assert_eq!(first_step(&run_view), "tribunal resume sprint-k3f9");
    let summary = run_view.run_summary().unwrap();
    assert_eq!(summary.detail, "the work that waited on a branch of its own is merged");
}

#[test]
fn a_story_on_its_own_branch_is_merged_and_not_resumed() {
    let story_view = story_on_own_branch();
    let waiting = report_on_own_branch(&story_view, false);
    assert_eq!((waiting.head.exit_code, waiting.stories[0].verdict), (3, ReportVerdict::OnOwnBranch));
    assert!(waiting.next[0].starts_with(&format!("git merge {OWN_BRANCH} ")), "{:?}", waiting.next);
    assert!(!waiting.next.iter().any(|step| step.contains("resume")), "{:?}", waiting.next);
    let merged = report_on_own_branch(&story_view, true);
    assert_eq!((merged.head.exit_code, merged.stories[0].verdict), (0, ReportVerdict::Merged));
    assert!(!merged.to_text(&Screen::default()).contains("git merge"));
}

#[test]
fn the_decisions_are_named_only_if_a_story_asks_something() {
    let steps_of = |reason: RunReason| {
        let run_view = sprint_with_child(reason, "", false);
        tribunal_report::suggest_next_steps(&RunStanding { run_view: &run_view, is_live: false }, "tribunal")
    };
    let decisions_step = "tribunal decisions    (what its child runs ask you)";
    assert_eq!(steps_of(RunReason::Cost)[0], decisions_step);
    assert_eq!(steps_of(RunReason::Blocked)[0], decisions_step);
    assert_eq!(steps_of(RunReason::Baseline)[0], "tribunal resume sprint-k3f9");
    assert_eq!(steps_of(RunReason::CheckoutNotReady)[0], "tribunal resume sprint-k3f9");
}

#[test]
fn a_confirmation_does_not_hide_the_commit_with_the_work() {
    let events = vec![
        started(story_order("1-2-sift", ""), None),
        landed("1a2b3c4d5e6f", "main"),
        landed("2222222222bbbb", "main"),
    ];
    let report = report_on(&RunView::from_entries(&journal_of(MERGED, events)));
    assert_eq!(report.stories[0].work.commit, Some(CommitId::new("1a2b3c4d5e6f")));
    let sentence = &report.stories[0].sentence;
    assert!(sentence.starts_with("merged on main as 1a2b3c4d5e, confirmed in 2222222222; "), "{sentence}");
}

#[test]
fn a_story_that_waits_shows_its_checks_and_how_to_look_closer() {
    let mut events = vec![
        started(story_order("1-3-pack", ""), None),
        RunEvent::EffectFinished {
            key: Key::new("develop-1/checks"),
            segment: 1,
            reply: samples::passed_checks_reply(&checks()),
        },
        session(1, SessionOutcome::Incomplete),
    ];
    let spending = Spending { tokens: 21_000, cost: 0.0, elapsed_ms: 10_000 };
    let result = result_of(WAITING, &events);
    events.push(RunEvent::RunParked(summary(RunReason::Blocked, "5 sessions failed", result, spending)));
    let report = report_on(&RunView::from_entries(&journal_of(WAITING, events)));
    let text = report.to_text(&Screen::default());
    let story_lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with('?')).take(7).collect();
    insta::assert_snapshot!(story_lines.join("\n"), @r"
    ? 1-3-pack
      waits for you: your decision is needed (5 sessions failed)
      look at: 1 of 1 session not completed; the log says why
      1 session, 1 not completed · 1 check passed · 21k tokens · 0:10
        tribunal diff story-1-3-pack-b1
        tribunal verify 1-3-pack
        tribunal log story-1-3-pack-b1
    ");
}

/// A story that has landed and owes something.
fn owing_events() -> Vec<RunEvent> {
    let about = StoryTopic::StoryOwes { actions: vec!["Buy the domain".into()] };
    let decision = Decision {
        id: DecisionId::new("D1"),
        about: DecisionTopic::Workflow(WorkflowTopic::Story(about)),
        owner: "the user".into(),
        question: "Buy the domain".into(),
        choices: vec![DecisionChoice { key: ChoiceKey::Skip, label: "leave it".into() }],
        answer: None,
    };
    let mut order = story_order("1-2-sift", "");
    order.review.mode = StoryReviewMode::Off;
    vec![
        started(order, None),
        session(1, SessionOutcome::Completed),
        landed("1a2b3c4d5e6f", "main"),
        RunEvent::DecisionPosted { decision },
    ]
}

#[test]
fn a_skipped_story_that_has_landed_is_not_done() {
    let mut events = owing_events();
    let spending = Spending { tokens: 0, cost: 0.0, elapsed_ms: 10_000 };
    let result = result_of(MERGED, &events);
    let detail = "commit 1a2b3c4d5e stays; it still owes: Buy the domain";
    events.push(RunEvent::RunFinished(summary(RunReason::Abandoned, detail, result, spending)));
    let report = report_on(&RunView::from_entries(&journal_of(MERGED, events)));
    let story = &report.stories[0];
    assert_eq!((story.verdict, report.head.exit_code), (ReportVerdict::Skipped, 0));
    assert_eq!(story.sentence, "skipped: its code is on main as 1a2b3c4d5e; still owed: Buy the domain");
}

#[test]
fn a_story_that_has_landed_and_waits_says_that_it_was_not_reviewed() {
    let mut events = owing_events();
    let spending = Spending { tokens: 0, cost: 0.0, elapsed_ms: 10_000 };
    let result = result_of(MERGED, &events);
    events.push(RunEvent::RunParked(summary(RunReason::Blocked, "Buy the domain", result, spending)));
    let report = report_on(&RunView::from_entries(&journal_of(MERGED, events)));
    let story = &report.stories[0];
    assert_eq!(story.verdict, ReportVerdict::Waiting);
    assert_eq!(story.look_at, ["no check has run on the work", "it was not reviewed"]);
}

#[test]
fn a_waiting_story_that_is_continued_is_listed_once() {
    let share = LimitShare { runtime_ms: 1_000, cost: Cost(1), tokens: 1 };
    let events = vec![
        started(SprintOrder::new(story_order("", ""), share), None),
        RunEvent::from_workflow(SprintEvent::SprintStoryLeft {
            story: "1-3-pack".into(),
            standing: StoryStanding::Waiting,
            detail: "Buy the domain".into(),
            child: None,
        }),
        RunEvent::from_workflow(SprintEvent::SprintStoryTaken {
            story: "1-3-pack".into(),
            reason: "you answered".into(),
        }),
    ];
    let run_view = RunView::from_entries(&journal_of(SPRINT, events));
    let standing = RunStanding { run_view: &run_view, is_live: true };
    let status = tables::render_status(&standing, &RunDetails::default(), &Screen::default());
    assert!(status.contains("● 1-3-pack") && !status.contains("Buy the domain"), "{status}");
}

#[test]
fn a_sprint_that_is_worked_on_counts_what_its_story_has_used() {
    let share = LimitShare { runtime_ms: 1_000, cost: Cost(1), tokens: 1 };
    let order = SprintOrder::new(story_order("", ""), share);
    let events = vec![started(order, None), child_started("story-1-2-sift", MERGED)];
    let report = report_on(&RunView::from_entries(&journal_of(SPRINT, events)));
    // The journal of the sprint ends after one second, that of its story ten seconds after its start.
    assert_eq!((report.head.usage.tokens, report.head.usage.elapsed_ms), (31_000, 10_000));
}
