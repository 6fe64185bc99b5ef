//! Frames of a sprint: the stories that are over, and what the run of the current story and its review are at. The header of a
//! sprint and of its stories says whose limits it names.

use tribunal_engine::{
    ids::{AgentName, CommitId, Hash, Key, RunId},
    limits::{Cost, LimitShare, RunLimits, UsageTotals},
    reason::RunReason,
    timestamp::Timestamp,
};
use tribunal_report::{
    DisplayMode, LineReporter, Reporter, Screen,
    live::{LiveBoard, ViewControls},
};
use tribunal_workflows::{
    development::{
        checks::{CheckPlace, CheckSpec, CommandLine, RunChecks},
        workspace::TargetBranch,
    },
    findings::{reported_finding::LeftFindings, subject::Subject},
    review::order::ReviewOrder,
    runs::{
        effect::{AskAgent, Effect, Reply},
        kinds::RunOrder,
        settings::Settings,
        types::{ChildOutcome, ChildReport, JournalEntry, RunChild, RunEvent},
    },
    sprint::{event::SprintEvent, order::SprintOrder, standing::StoryStanding},
    story::{
        event::StoryEvent,
        facts::StoryName,
        order::{StoryOrder, StoryStepName},
    },
    tasks::{
        brief::{AgentTask, WorkspaceKind},
        client::JobKind,
        instructions::InstructionBrief,
        purpose::{ExpectedAnswer, TaskPurpose},
    },
};
use unicode_width::UnicodeWidthChar;

use super::{progress_of, sample_journal, screen_of_width};

const SPRINT: &str = "sprint-k3f9";
const STORY: &str = "story-1-3-pack-b1";
/// The run of [`sample_journal`].
const REVIEW: &str = "prd-86kc";
const HOUR_MS: u64 = 3_600_000;
const STORY_SHARE: LimitShare = LimitShare { runtime_ms: 4 * HOUR_MS, cost: Cost(10_000_000), tokens: 2_000_000 };

/// Makes a journal of these events, a second apart.
fn journal_of(run_id: &str, events: Vec<RunEvent>) -> Vec<JournalEntry> {
    let make_entry = |(index, event): (usize, RunEvent)| JournalEntry {
        v: 1,
        run: RunId::new(run_id),
        seq: index as u64 + 1,
        id: format!("e{index}"),
        at: Timestamp { wall_ms: 1_794_754_020_000 + index as u64 * 1_000, awake_ms: index as u64 * 1_000 },
        event,
    };
    events.into_iter().enumerate().map(make_entry).collect()
}

fn started(order: impl Into<RunOrder>, share: Option<LimitShare>) -> RunEvent {
    let limits = RunLimits {
        runtime_ms: 12 * HOUR_MS,
        cost: Cost::from_amount(50.0),
        tokens: 10_000_000,
        share,
        ..RunLimits::default()
    };
    RunEvent::RunStarted {
        version: 1,
        build: "tribunal 0.1.0".into(),
        settings: Settings { limits, ..Settings::default() },
        order: order.into(),
        parent: None,
        batch: None,
    }
}

fn story_order(title: &str) -> StoryOrder {
    let story = StoryName { title: title.into(), ..StoryName::from_key("1-3-pack") };
    StoryOrder::new(story, TargetBranch { name: "main".into(), created_at: None })
}

fn effect_started(key: &str, effect: impl Into<Effect>) -> RunEvent {
    let fingerprint = Hash::digest_of(key.as_bytes());
    RunEvent::EffectStarted { key: Key::new(key), segment: 1, fingerprint, effect: effect.into() }
}

/// The effect that runs a child, and the child's id.
fn child_started(name: &str, order: impl Into<RunOrder>, child: &str) -> [RunEvent; 2] {
    let run_child =
        RunChild { name: name.into(), order: order.into(), share: STORY_SHARE, workspace: None, tier: None };
    let child_started = RunEvent::ChildStarted { key: Key::new(name), name: name.into(), child: RunId::new(child) };
    [effect_started(name, run_child), child_started]
}

fn child_returned(name: &str, child: &str) -> RunEvent {
    let report = ChildReport {
        run: RunId::new(child),
        outcome: RunReason::GoalMet.outcome(),
        reason: RunReason::GoalMet,
        detail: "merged on main".into(),
        used: UsageTotals { cost: Cost::from_amount(0.31), tokens: 31_000, ..UsageTotals::default() },
        worked_ms: 245_000,
        result: LeftFindings::default(),
    };
    RunEvent::EffectFinished { key: Key::new(name), segment: 1, reply: Reply::RunChild(ChildOutcome::Ended(report)) }
}

fn story_left(story: &str) -> RunEvent {
    RunEvent::from_workflow(SprintEvent::SprintStoryLeft {
        story: story.into(),
        standing: StoryStanding::Done,
        detail: "merged on main".into(),
        child: None,
    })
}

/// A sprint that has done so many stories, the first of which used something, and has begun another one.
fn sprint_events(done_count: u32, title: &str) -> Vec<RunEvent> {
    let mut events = vec![started(SprintOrder::new(story_order(""), STORY_SHARE), None)];
    events.push(RunEvent::ChildStarted {
        key: Key::new("story-1-1-part"),
        name: "story-1-1-part".into(),
        child: RunId::new("story-1-1-part-a1"),
    });
    events.push(child_returned("story-1-1-part", "story-1-1-part-a1"));
    events.extend((1..=done_count).map(|number| story_left(&format!("1-{number}-part"))));
    let reason = "the next one on the board".to_string();
    events.push(RunEvent::from_workflow(SprintEvent::SprintStoryTaken { story: "1-3-pack".into(), reason }));
    events.extend(child_started("story-1-3-pack", story_order(title), STORY));
    events
}

fn step_done(step: StoryStepName) -> RunEvent {
    RunEvent::from_workflow(StoryEvent::StoryStepDone { step })
}

/// The run of the story, up to the step `develop`.
fn prepared_story(title: &str) -> Vec<RunEvent> {
    let prepared =
        StoryEvent::StoryPrepared { path: "/clone".into(), base: CommitId::new("0000000000aaaa"), remarks: Vec::new() };
    vec![
        started(story_order(title), Some(STORY_SHARE)),
        RunEvent::from_workflow(prepared),
        step_done(StoryStepName::Prepare),
    ]
}

fn session_started() -> RunEvent {
    let brief = InstructionBrief { title: "story 1-3-pack".into(), ..InstructionBrief::new("Develop the story.") };
    let purpose = TaskPurpose { job: JobKind::Develop, expects: ExpectedAnswer::Status };
    let task = AgentTask::new(AgentName::new("claude"), purpose, brief, WorkspaceKind::Private, 1_000);
    effect_started("develop-1/session", AskAgent { task, booking: None })
}

/// A board with the entries of the sprint and of its story, 47 seconds after the start of the sprint.
fn board_of(sprint: Vec<RunEvent>, story: Vec<RunEvent>) -> LiveBoard {
    let controls = ViewControls { mode: DisplayMode::Streaming, reads_keys: true, ..ViewControls::default() };
    let mut live_board = LiveBoard::new(controls);
    journal_of(SPRINT, sprint).iter().for_each(|entry| live_board.track_entry(entry));
    journal_of(STORY, story).iter().for_each(|entry| live_board.track_child_entry(entry));
    live_board
}

/// An agent develops the story.
fn board_mid_session(done_count: u32, title: &str) -> LiveBoard {
    let mut story = prepared_story(title);
    story.push(session_started());
    let mut live_board = board_of(sprint_events(done_count, title), story);
    live_board.advance_clock(47_000);
    live_board.note_child_progress(&RunId::new(STORY), &progress_of("develop-1/session", "editing src/pack.py"));
    live_board
}

/// The frame without its title.
fn draw_below_title(live_board: &LiveBoard, max_lines: usize) -> String {
    live_board.draw_frame(&screen_of_width(80), max_lines)[1..].join("\n")
}

#[test]
fn the_agent_of_the_current_story_is_shown_with_the_steps_and_both_limits() {
    insta::assert_snapshot!(draw_below_title(&board_mid_session(2, "Pack the bread"), 16), @r"
    ✓ 1-1-part done: merged on main
    ✓ 1-2-part done: merged on main
    ● story 1-3-pack: Pack the bread · run story-1-3-pack-b1
      ✓ prepare  ● develop  ○ review  ○ land
    ▸ develop          0:40  story 1-3-pack · editing src/pack.py
    2 stories done
    story limits: 0 tokens · $0.00 of $10.00 · 0:43 of 4:00:00
    sprint limits: 31k tokens · $0.31 of $50.00 · 0:47 of 12:00:00
    1-4 or v: detail level · s: stop · ?: help
    ");
    let silent_line = board_mid_session(2, "Pack the bread").draw_frame(&screen_of_width(100), 1).join("\n");
    let expected = "▸ sprint-k3f9 · story 1-3-pack session 1 working · 31k tokens, $0.31 · 0:47";
    assert_eq!(silent_line, expected);
}

#[test]
fn the_review_of_the_story_is_shown_with_its_round_and_its_panel() {
    let mut story = prepared_story("Pack the bread");
    story.extend([session_started(), step_done(StoryStepName::Develop)]);
    story.extend(child_started("review-1", ReviewOrder::new(Subject::from_path("plan.md", None)), REVIEW));
    let mut live_board = board_of(sprint_events(2, "Pack the bread"), story);
    sample_journal().iter().take(12).for_each(|entry| live_board.track_child_entry(entry));
    live_board.advance_clock(47_000);
    let progress = progress_of("round-1/review/adversarial", "reading src/pack.py");
    live_board.note_child_progress(&RunId::new(REVIEW), &progress);
    insta::assert_snapshot!(draw_below_title(&live_board, 20), @r"
    ✓ 1-1-part done: merged on main
    ✓ 1-2-part done: merged on main
    ● story 1-3-pack: Pack the bread · run story-1-3-pack-b1
      ✓ prepare  ✓ develop  ● review  ○ land
      review: round 1 of 3 reviewing
    ▸ party            0:40  working
    ▸ adversarial      0:40  reading src/pack.py
    ✓ elicitation            3 findings
    2 stories done
    story limits: 3.5k tokens · $0.03 of $10.00 · 0:46 of 4:00:00
    sprint limits: 34k tokens · $0.34 of $50.00 · 0:47 of 12:00:00
    1-4 or v: detail level · s: stop · ?: help
    ");
}

#[test]
fn checks_that_take_a_while_are_shown() {
    let place = CheckPlace::Workspace { workspace: "story".into(), tree: None };
    let checks = vec![CheckSpec::new(CommandLine::from_shell_line("make test"))];
    let mut story = prepared_story("Pack the bread");
    story.push(effect_started("develop-1/checks", RunChecks { place, checks }));
    let mut live_board = board_of(sprint_events(2, "Pack the bread"), story);
    let find_check = |live_board: &LiveBoard| {
        live_board.draw_frame(&screen_of_width(80), 16).into_iter().find(|line| line.contains("make test"))
    };
    assert_eq!(find_check(&live_board), None, "it has just begun");
    live_board.advance_clock(47_000);
    let expected = "▸ tribunal         0:40  running checks: make test";
    assert_eq!(find_check(&live_board).as_deref(), Some(expected));
}

#[test]
fn on_a_low_screen_the_last_stories_are_shown_and_the_others_counted() {
    let live_board = board_mid_session(6, "Pack the bread");
    insta::assert_snapshot!(draw_below_title(&live_board, 10), @r"
    … 5 more
    ✓ 1-6-part done: merged on main
    ● story 1-3-pack: Pack the bread · run story-1-3-pack-b1
      ✓ prepare  ● develop  ○ review  ○ land
    ▸ develop          0:36  story 1-3-pack · editing src/pack.py
    6 stories done
    story limits: 0 tokens · $0.00 of $10.00 · 0:39 of 4:00:00
    sprint limits: 31k tokens · $0.31 of $50.00 · 0:47 of 12:00:00
    1-4 or v: detail level · s: stop · ?: help
    ");
    assert!(draw_below_title(&live_board, 9).starts_with("● story 1-3-pack: "));
}

#[test]
fn a_story_that_came_back_is_only_in_the_list_and_its_usage_counts_once() {
    let mut sprint = sprint_events(1, "Pack the bread");
    let story = prepared_story("Pack the bread");
    let mut live_board = board_of(sprint.clone(), story);
    let known_count = sprint.len();
    sprint.extend([child_returned("story-1-3-pack", STORY), story_left("1-3-pack")]);
    journal_of(SPRINT, sprint)[known_count..].iter().for_each(|entry| live_board.track_entry(entry));
    live_board.advance_clock(47_000);
    insta::assert_snapshot!(draw_below_title(&live_board, 16), @r"
    ✓ 1-1-part done: merged on main
    ✓ 1-3-pack done: merged on main
    2 stories done
    62k tokens · $0.62 of $50.00 · 0:47 of 12:00:00
    1-4 or v: detail level · s: stop · ?: help
    ");
}

#[test]
fn the_headers_say_whose_limits_they_are() {
    let limit_lines = |run_event: RunEvent| {
        let mut written = Vec::new();
        let mut reporter = LineReporter::new(&mut written, Screen::default(), DisplayMode::Streaming);
        journal_of(SPRINT, vec![run_event]).iter().for_each(|entry| reporter.report_entry(entry).unwrap());
        let drawn_text = String::from_utf8(written).unwrap();
        drawn_text.lines().filter(|line| line.contains("limits: ")).map(String::from).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(limit_lines(started(SprintOrder::new(story_order(""), STORY_SHARE), None)), @"
    sprint limits: 5 failures in a row, 720 min, $50.00 (or 10M tokens if no cost is reported), 1,000 calls per hour in all runs
    story limits: 5 sessions a step, 240 min, $10.00 (or 2M tokens if no cost is reported)
    ");
    insta::assert_snapshot!(
        limit_lines(started(story_order(""), Some(STORY_SHARE))),
        @"story limits: 5 sessions a step, 5 failures in a row, 240 min, $10.00 (or 2M tokens if no cost is reported)"
    );
    let own_limits = limit_lines(started(story_order(""), None));
    assert!(own_limits.starts_with("limits: 5 sessions a step, "), "{own_limits}");
}

#[test]
fn no_line_is_wider_than_the_screen_and_no_frame_higher() {
    let title = format!("審査 \u{1b}[2J {} \u{202e}", "a very long title ".repeat(20));
    let live_board = board_mid_session(9, &title);
    for columns in [1, 20, 39, 40, 55, 80, 100, 160] {
        for max_lines in [1, 5, 6, 7, 9, 12, 30] {
            let frame = live_board.draw_frame(&screen_of_width(columns), max_lines);
            assert!(!frame.is_empty() && frame.len() <= max_lines, "{frame:?}");
            for line in frame {
                let width: usize = line.chars().map(|character| character.width().unwrap_or(0)).sum();
                assert!(width <= columns && !line.contains(char::is_control), "{columns}: {line:?}");
            }
        }
    }
}
