//! A journal may have come with a clone, and agents write what they like: no string in it may control a screen.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use tribunal_core::{
    event::{Entry, Event},
    progress::Progress,
    view::RunView,
};
use tribunal_report::{
    JsonLines, Lines, Mode, Reporter, Rulings, Screen, Verbose,
    calls::calls,
    tables::{self, Standing},
};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged, entries};

/// A text that clears the screen, sends a one-character escape sequence, reverses the text direction and forges a line.
const POISON: &str = "\x1b[2J\u{9b}31m\u{202e}\n[!] forged";

/// The entry with the hostile text in every free string. Names of kinds and ids of findings cannot take it.
fn poisoned(entry: &Entry) -> Entry {
    let mut value = serde_json::to_value(entry).unwrap();
    let mut paths = Vec::new();
    strings(&value, String::new(), &mut paths);
    for path in paths {
        let before = value.pointer(&path).unwrap().clone();
        let after = format!("{}{POISON}", before.as_str().unwrap());
        *value.pointer_mut(&path).unwrap() = after.into();
        let reads = serde_json::from_value::<Entry>(value.clone());
        // A string that the format does not allow to change keeps its value.
        if !reads.is_ok_and(|entry| entry.event != Event::Unknown) {
            *value.pointer_mut(&path).unwrap() = before;
        }
    }
    serde_json::from_value(value).unwrap()
}

fn strings(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(path),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| strings(item, format!("{path}/{index}"), found));
        }
        Value::Object(map) => {
            map.iter().for_each(|(name, item)| strings(item, format!("{path}/{name}"), found));
        }
        _ => {}
    }
}

fn journals() -> Vec<Vec<Entry>> {
    let recorded = std::iter::once(entries(SAMPLE_JOURNAL));
    recorded.chain([challenged()]).map(|journal| journal.iter().map(poisoned).collect()).collect()
}

fn assert_harmless(what: &str, drawn: &str) {
    assert!(!drawn.is_empty(), "{what}");
    for line in drawn.lines() {
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{what}: {line:?}");
        assert!(!line.trim_start().starts_with("[!] forged"), "{what}: {line:?}");
    }
}

#[test]
fn nothing_in_a_journal_steers_a_reporter_s_screen() {
    let narrow = || Screen { width: Some(60), ..Screen::default() };
    for journal in journals() {
        for mode in Mode::ALL {
            for screen in [Screen::default(), narrow()] {
                let mut out = Vec::new();
                let mut lines = Lines::new(&mut out, screen, mode);
                for entry in &journal {
                    lines.entry(entry).unwrap();
                    if let Event::EffectStarted { key, .. } = &entry.event {
                        lines.progress(&Progress { key: key.clone(), text: POISON.into() }).unwrap();
                    }
                }
                // A wrapped line may begin with anything: it is indented, or it is the agent's own text.
                let drawn = String::from_utf8(out).unwrap();
                assert!(
                    !drawn.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
                    "{mode:?}"
                );
            }
        }
        let (mut verbose, mut json) = (Vec::new(), Vec::new());
        for entry in &journal {
            Verbose::new(&mut verbose, Screen::default()).entry(entry).unwrap();
            JsonLines::new(&mut json).entry(entry).unwrap();
        }
        assert_harmless("verbose", &String::from_utf8(verbose).unwrap());
        let json = String::from_utf8(json).unwrap();
        assert_harmless("json", &json);
        for (line, entry) in json.lines().zip(&journal) {
            assert_eq!(serde_json::from_str::<Entry>(line).unwrap(), *entry, "the same for programs");
        }
    }
}

#[test]
fn nothing_in_a_journal_steers_the_screen_of_a_table() {
    for journal in journals() {
        let view = RunView::of(&journal);
        let screen = Screen::default();
        for live in [true, false] {
            let standing = Standing { view: &view, live };
            assert_harmless("runs", &tables::runs(&[standing], &screen));
            assert_harmless("status", &tables::status(&standing, &screen));
        }
        assert_harmless(
            "findings",
            &tables::findings(view.findings.values(), &Rulings::of(&journal), &screen),
        );
        assert_harmless("calls", &tables::calls(&calls(&journal), &|_| None));
        assert_harmless("sent", &tables::sent(&calls(&journal), &|_| Some(7), &Screen::default()));
        let asking = (1..=journal.len()).map(|end| RunView::of(&journal[..end]));
        if let Some(asking) = asking.into_iter().find(|view| view.waiting().next().is_some()) {
            assert_harmless("decisions", &tables::decisions([&asking], &screen));
            assert_harmless("status", &tables::status(&Standing { view: &asking, live: false }, &screen));
        }
    }
}
