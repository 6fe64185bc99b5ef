//! A journal may have come with a clone, and agents write what they like: no string in it may control a screen.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use tribunal_engine::progress::AgentProgress;
use tribunal_report::{
    DisplayMode, JsonReporter, LineReporter, Reporter, RulingIndex, Screen, VerboseReporter,
    calls::collect_calls,
    tables::{self, RunDetails, RunStanding},
};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged_journal, parse_entries};
use tribunal_workflows::runs::{
    types::{JournalEntry, RunEvent},
    view::RunView,
};

/// A text that clears the screen, sends a one-character escape sequence, reverses the text direction and forges a line.
const HOSTILE_TEXT: &str = "\x1b[2J\u{9b}31m\u{202e}\nerror: forged";

/// The entry with the hostile text in every free string. Names of kinds and ids of findings cannot take it.
fn poison_entry(clean_entry: &JournalEntry) -> JournalEntry {
    let mut entry_json = serde_json::to_value(clean_entry).unwrap();
    let mut string_paths = Vec::new();
    collect_string_paths(&entry_json, String::new(), &mut string_paths);
    for string_path in string_paths {
        let original = entry_json.pointer(&string_path).unwrap().clone();
        let poisoned_string = format!("{}{HOSTILE_TEXT}", original.as_str().unwrap());
        *entry_json.pointer_mut(&string_path).unwrap() = poisoned_string.into();
        let parsed = serde_json::from_value::<JournalEntry>(entry_json.clone());
        // A string that the format does not allow to change keeps its value.
        if !parsed.is_ok_and(|poisoned_entry| !matches!(poisoned_entry.event, RunEvent::Unknown(_))) {
            *entry_json.pointer_mut(&string_path).unwrap() = original;
        }
    }
    serde_json::from_value(entry_json).unwrap()
}

fn collect_string_paths(json_value: &Value, value_path: String, string_paths: &mut Vec<String>) {
    match json_value {
        Value::String(_) => string_paths.push(value_path),
        Value::Array(array_items) => {
            array_items.iter().enumerate().for_each(|(item_index, item)| {
                collect_string_paths(item, format!("{value_path}/{item_index}"), string_paths)
            });
        }
        Value::Object(object_map) => {
            object_map.iter().for_each(|(field_name, item)| {
                collect_string_paths(item, format!("{value_path}/{field_name}"), string_paths)
            });
        }
        _ => {}
    }
}

fn poisoned_journals() -> Vec<Vec<JournalEntry>> {
    let clean_sample = std::iter::once(parse_entries(SAMPLE_JOURNAL));
    clean_sample
        .chain([challenged_journal()])
        .map(|clean_journal| clean_journal.iter().map(poison_entry).collect())
        .collect()
}

fn assert_harmless(output_name: &str, drawn_text: &str) {
    assert!(!drawn_text.is_empty(), "{output_name}");
    for line in drawn_text.lines() {
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{output_name}: {line:?}");
        assert!(!line.trim_start().starts_with("error: forged"), "{output_name}: {line:?}");
    }
}

#[test]
fn no_text_in_a_journal_controls_the_screen_of_a_reporter() {
    let narrow_screen = || Screen { max_columns: Some(60), ..Screen::default() };
    for journal in poisoned_journals() {
        for mode in DisplayMode::ALL {
            for screen in [Screen::default(), narrow_screen()] {
                let mut written = Vec::new();
                let mut reporter = LineReporter::new(&mut written, screen, mode);
                for entry in &journal {
                    reporter.report_entry(entry).unwrap();
                    if let RunEvent::EffectStarted { key: effect_key, .. } = &entry.event {
                        reporter
                            .report_progress(&AgentProgress {
                                task_key: effect_key.clone(),
                                activity: HOSTILE_TEXT.into(),
                                is_output: false,
                            })
                            .unwrap();
                    }
                }
                // A wrapped line may begin with anything: it is indented, or it is the agent's own text.
                let drawn_text = String::from_utf8(written).unwrap();
                assert!(!drawn_text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{mode:?}");
            }
        }
        let (mut verbose_output, mut json_output) = (Vec::new(), Vec::new());
        for entry in &journal {
            VerboseReporter::new(&mut verbose_output, Screen::default()).report_entry(entry).unwrap();
            JsonReporter::new(&mut json_output).report_entry(entry).unwrap();
        }
        assert_harmless("verbose", &String::from_utf8(verbose_output).unwrap());
        let json_output = String::from_utf8(json_output).unwrap();
        assert_harmless("json", &json_output);
        for (json_line, entry) in json_output.lines().zip(&journal) {
            assert_eq!(serde_json::from_str::<JournalEntry>(json_line).unwrap(), *entry, "the same for programs");
        }
    }
}

#[test]
fn no_text_in_a_journal_controls_the_screen_of_a_table() {
    for journal in poisoned_journals() {
        let run_view = RunView::from_entries(&journal);
        let screen = Screen::default();
        for is_live in [true, false] {
            let run_standing = RunStanding { run_view: &run_view, is_live };
            assert_harmless("runs", &tables::render_runs(&[run_standing], &screen));
            assert_harmless("status", &tables::render_status(&run_standing, &RunDetails::default(), &screen));
        }
        assert_harmless(
            "findings",
            &tables::render_findings(run_view.all_findings(), &RulingIndex::from_entries(&journal), &screen),
        );
        assert_harmless("calls", &tables::render_calls(&collect_calls(&journal), &|_| None, &screen));
        assert_harmless("sent", &tables::render_sent_texts(&collect_calls(&journal), &|_| Some(7), &Screen::default()));
        let partial_views = (1..=journal.len()).map(|entry_count| RunView::from_entries(&journal[..entry_count]));
        if let Some(waiting_view) =
            partial_views.into_iter().find(|run_view| run_view.open_decisions().next().is_some())
        {
            assert_harmless("decisions", &tables::render_decisions([&waiting_view], &screen));
            assert_harmless(
                "status",
                &tables::render_status(
                    &RunStanding { run_view: &waiting_view, is_live: false },
                    &RunDetails::default(),
                    &screen,
                ),
            );
        }
    }
}
