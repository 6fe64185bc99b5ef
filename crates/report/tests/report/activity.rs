//! What is shown while a run works: who works on what, messages on their way, and what a landing changed.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::{ids::Key, user_remark::UserRemark};
use tribunal_report::{
    DisplayMode, LineReporter, Reporter, Screen, list_active_work, list_unheard_messages,
    tables::{RunDetails, RunStanding, render_status},
};
use tribunal_testkit::{SAMPLE_JOURNAL, parse_entries};
use tribunal_workflows::{
    review::review_keys::ReviewKeys,
    runs::{
        effect::{Effect, Reply},
        types::{JournalEntry, Requests, RunEvent},
        user_request::UserRequest,
        view::RunView,
    },
    tasks::brief::TaskBrief,
};

fn sample_journal() -> Vec<JournalEntry> {
    parse_entries(SAMPLE_JOURNAL)
}

/// The journal up to the last of the entries that are wanted.
fn journal_until(is_wanted: impl Fn(&RunEvent) -> bool) -> Vec<JournalEntry> {
    let mut journal = sample_journal();
    let first_index = journal.iter().position(|entry| is_wanted(&entry.event)).unwrap();
    let following = journal[first_index..].iter().take_while(|entry| is_wanted(&entry.event)).count();
    journal.truncate(first_index + following);
    journal
}

fn is_ask(run_event: &RunEvent) -> bool {
    matches!(run_event, RunEvent::EffectStarted { effect: Effect::Ask(_), .. })
}

fn status_of(journal: &[JournalEntry], is_live: bool, undelivered: Vec<UserRemark>) -> String {
    let run_view = RunView::from_entries(journal);
    let active_work = list_active_work(journal);
    let started_ms = active_work.first().map_or(0, |work| work.started_ms);
    let now_ms = started_ms + 133_000;
    let run_details = RunDetails { active_work, undelivered, now_ms, ..RunDetails::default() };
    render_status(&RunStanding { run_view: &run_view, is_live }, &run_details, &Screen::default())
}

#[test]
fn a_running_run_names_its_agents_their_tasks_and_since_when() {
    let journal = journal_until(is_ask);
    let asked_count = journal.iter().filter(|entry| is_ask(&entry.event)).count();
    let active_work = list_active_work(&journal);
    assert_eq!(active_work.len(), asked_count);
    assert!(active_work.iter().all(|work| work.agent.is_some() && work.role.is_some()));
    let status_text = status_of(&journal, true, Vec::new());
    let working_lines: Vec<&str> = status_text.lines().filter(|line| line.starts_with("  working: ")).collect();
    assert_eq!(working_lines.len(), asked_count);
    let first_agent = active_work[0].agent.as_ref().unwrap();
    let first_role = active_work[0].role.unwrap();
    assert_eq!(working_lines[0], format!("  working: {first_role} ({first_agent}) on round 1, for 2:13"));
    let run_id = &journal[0].run;
    for command in [
        format!("tribunal log {run_id} --follow"),
        format!("tribunal say {run_id} \"MESSAGE\""),
        format!("tribunal stop {run_id}"),
    ] {
        assert!(status_text.contains(&command), "{command}: {status_text}");
    }
}

#[test]
fn work_is_over_when_its_reply_is_there() {
    assert_eq!(list_active_work(&sample_journal()), [], "a finished run works on nothing");
    let mut journal = journal_until(is_ask);
    let whole_journal = sample_journal();
    let is_first_reply =
        |entry: &&JournalEntry| matches!(&entry.event, RunEvent::EffectFinished { reply: Reply::Ask(_), .. });
    let first_reply = whole_journal.iter().find(is_first_reply).unwrap();
    let RunEvent::EffectFinished { key: answered_key, .. } = &first_reply.event else { unreachable!() };
    let work_before = list_active_work(&journal).len();
    journal.push(first_reply.clone());
    let active_work = list_active_work(&journal);
    assert_eq!(active_work.len(), work_before - 1);
    assert!(active_work.iter().all(|work| work.effect_key != *answered_key));
}

#[test]
fn fixers_are_named_by_number_with_their_findings() {
    let journal = journal_until(
        |run_event| matches!(run_event, RunEvent::EffectStarted { key, effect: Effect::Ask(_), .. } if key.fixer_number().is_some()),
    );
    let first_fixer =
        list_active_work(&journal).into_iter().find(|work| work.effect_key.fixer_number() == Some(1)).unwrap();
    let finding_names: Vec<String> = first_fixer.findings.iter().map(ToString::to_string).collect();
    let agent = first_fixer.agent.as_ref().unwrap();
    assert_eq!(first_fixer.description, format!("fixer 1 ({agent}) on {}", finding_names.join(" ")));
}

#[test]
fn a_resumed_run_counts_from_when_it_was_resumed() {
    let mut journal = journal_until(is_ask);
    let mut resumed_entry = journal.last().unwrap().clone();
    resumed_entry.at.wall_ms += 3_600_000;
    resumed_entry.event = RunEvent::RunResumed { life: 2 };
    let resumed_ms = resumed_entry.at.wall_ms;
    journal.push(resumed_entry);
    assert!(list_active_work(&journal).iter().all(|work| work.started_ms == resumed_ms));
}

#[test]
fn a_message_is_unheard_until_a_prompt_has_it() {
    let message = UserRemark::new("mind the budget");
    let mut journal = journal_until(is_ask);
    let mut next_entry = |event: RunEvent| {
        let entry = JournalEntry { event, ..journal.last().unwrap().clone() };
        journal.push(entry);
        list_unheard_messages(&journal)
    };
    let key = Key::for_end().child_key("inbox");
    let inbox_reply = Reply::Inbox(Requests { requests: vec![UserRequest::Resume, UserRequest::Say(message.clone())] });
    assert_eq!(next_entry(RunEvent::EffectFinished { key, segment: 1, reply: inbox_reply }), vec![message.clone()]);
    let ask_event = sample_journal().into_iter().find(|entry| is_ask(&entry.event)).unwrap().event;
    assert_eq!(next_entry(ask_event.clone()), vec![message.clone()], "this prompt was written before");
    let RunEvent::EffectStarted { key, segment, fingerprint, effect: Effect::Ask(mut ask_agent) } = ask_event else {
        unreachable!()
    };
    let TaskBrief::Review(review_brief) = &mut ask_agent.task.brief else { unreachable!() };
    review_brief.said.push(message.to_string());
    assert_eq!(next_entry(RunEvent::EffectStarted { key, segment, fingerprint, effect: Effect::Ask(ask_agent) }), []);
}

#[test]
fn the_status_says_what_becomes_of_a_message() {
    let message = || vec![UserRemark::new("mind the\nbudget")];
    let running = journal_until(is_ask);
    for (journal, is_live, expected_text) in [
        (&running, true, "your message “mind the budget” is delivered with the next prompt"),
        (&running, false, "your message “mind the budget” was not delivered yet; resuming the run delivers it"),
        (
            &sample_journal(),
            false,
            "your message “mind the budget” was not delivered, because the run had already ended",
        ),
    ] {
        let status_text = status_of(journal, is_live, message());
        assert!(status_text.contains(&format!("  {expected_text}\n")), "{status_text}");
    }
}

fn draw_lines(mode: DisplayMode) -> String {
    let mut written = Vec::new();
    let mut reporter = LineReporter::new(&mut written, Screen::default(), mode);
    sample_journal().iter().for_each(|entry| reporter.report_entry(entry).unwrap());
    String::from_utf8(written).unwrap()
}

#[test]
fn every_landing_is_followed_by_the_files_that_it_changed() {
    let drawn_text = draw_lines(DisplayMode::Streaming);
    let drawn_lines: Vec<&str> = drawn_text.lines().collect();
    let applied_lines: Vec<usize> =
        (0..drawn_lines.len()).filter(|index| drawn_lines[*index].contains("applied: ")).collect();
    assert!(!applied_lines.is_empty(), "{drawn_text}");
    for line_index in applied_lines {
        let stat_line = drawn_lines[line_index + 1];
        let (file_name, bar) = stat_line.split_once(" | ").unwrap_or_else(|| panic!("{stat_line}"));
        assert!(
            file_name.starts_with("      _bmad-output/") && file_name.trim_end().ends_with("prd.md"),
            "{stat_line}"
        );
        let (line_count, marks) = bar.trim_start().split_once(' ').unwrap();
        assert_eq!(marks.len(), line_count.parse::<usize>().unwrap(), "{stat_line}");
        assert!(marks.contains('+') && marks.chars().all(|mark| mark == '+' || mark == '-'), "{stat_line}");
    }
    assert!(!draw_lines(DisplayMode::Summary).contains(" | "), "a summary has one line per stage");
}

#[test]
fn the_ending_of_a_run_that_changed_files_names_the_commands_for_them() {
    let drawn_text = draw_lines(DisplayMode::Streaming);
    let run_id = sample_journal()[0].run.clone();
    for command in [format!("tribunal diff {run_id}"), format!("tribunal undo {run_id}")] {
        assert!(drawn_text.contains(&command), "{command}: {drawn_text}");
    }
}
