//! The live view on a terminal: the region appears once, and above it is exactly the log.

use std::{cell::RefCell, io, rc::Rc};

use tribunal_report::{
    DisplayMode, LineReporter, LiveReporter, Reporter,
    live::{LiveScreen, ViewControls},
};
use tribunal_workflows::runs::types::RunEvent;

use super::{progress_of, sample_journal, screen_of_width, terminal::FakeTerminal};

/// A writer to a terminal that the test can look at; it also counts the writes.
#[derive(Clone)]
pub struct SharedTerminal(Rc<RefCell<FakeTerminal>>, Rc<RefCell<usize>>);

impl SharedTerminal {
    pub fn new_terminal(columns: usize, rows: usize) -> SharedTerminal {
        SharedTerminal(Rc::new(RefCell::new(FakeTerminal::new(columns, rows))), Rc::default())
    }

    /// All lines that were ever shown, without the cursor's line if that is empty.
    pub fn all_lines(&self) -> Vec<String> {
        let borrowed = self.0.borrow();
        let mut trimmed_lines: Vec<String> =
            borrowed.all_lines.iter().map(|line| line.trim_end().to_string()).collect();
        trimmed_lines.pop_if(|last_line| last_line.is_empty());
        trimmed_lines
    }
}

impl io::Write for SharedTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().feed_bytes(bytes);
        *self.1.borrow_mut() += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn live_on_terminal(columns: usize, rows: usize, mode: DisplayMode) -> (LiveReporter<SharedTerminal>, SharedTerminal) {
    let shared = SharedTerminal::new_terminal(columns, rows);
    let controls = ViewControls { mode, reads_keys: true, ..ViewControls::default() };
    (LiveReporter::new(shared.clone(), screen_of_width(columns), rows, controls), shared)
}

/// A reporter that writes the log to the same kind of terminal without a live view.
fn lines_on_terminal(columns: usize, rows: usize, mode: DisplayMode) -> (LineReporter<SharedTerminal>, SharedTerminal) {
    let shared = SharedTerminal::new_terminal(columns, rows);
    (LineReporter::new(shared.clone(), screen_of_width(columns), mode), shared)
}

fn check_after_every_entry(columns: usize, rows: usize, mode: DisplayMode) {
    let (mut live_reporter, live_terminal) = live_on_terminal(columns, rows, mode);
    let (mut line_reporter, log_terminal) = lines_on_terminal(columns, rows, mode);
    for (entry_index, entry) in sample_journal().iter().enumerate() {
        live_reporter.report_entry(entry).unwrap();
        live_reporter.advance_clock(entry.at.awake_ms + entry_index as u64 * 1_000).unwrap();
        line_reporter.report_entry(entry).unwrap();
        assert!(live_terminal.0.borrow().is_cursor_shown);
        let (all_shown, log_lines) = (live_terminal.all_lines(), log_terminal.all_lines());
        assert_eq!(all_shown[..log_lines.len()], log_lines, "{columns} x {rows}, {mode}, entry {}", entry_index + 1);
        let region_lines = &all_shown[log_lines.len()..];
        let has_ended = matches!(entry.event, RunEvent::RunFinished(_));
        assert_eq!(region_lines.is_empty(), has_ended, "{region_lines:#?}");
        assert!(region_lines.len() <= (rows * 2 / 3).max(1), "{region_lines:#?}");
        if columns >= 60 && rows >= 12 && mode != DisplayMode::Silent && !has_ended {
            let title_count = region_lines.iter().filter(|line| line.starts_with("── review of")).count();
            assert_eq!(title_count, 1, "{region_lines:#?}");
        }
    }
}

#[test]
fn after_every_entry_the_log_is_above_the_region_and_the_region_appears_once() {
    for (columns, rows) in [(120, 40), (80, 24), (60, 12), (30, 8), (20, 4)] {
        for mode in DisplayMode::ALL {
            check_after_every_entry(columns, rows, mode);
        }
    }
}

#[test]
fn the_scrollback_of_a_whole_run_is_its_log() {
    let (mut live_reporter, live_terminal) = live_on_terminal(80, 24, DisplayMode::Streaming);
    let (mut line_reporter, log_terminal) = lines_on_terminal(80, 24, DisplayMode::Streaming);
    for entry in sample_journal() {
        live_reporter.report_entry(&entry).unwrap();
        line_reporter.report_entry(&entry).unwrap();
        if let RunEvent::EffectStarted { key: effect_key, .. } = &entry.event {
            live_reporter.report_progress(&progress_of(effect_key.as_str(), "審査中 🦀 \x1b[2J\r\n and more")).unwrap();
        }
        live_reporter.advance_clock(entry.at.awake_ms * 50).unwrap();
    }
    assert_eq!(live_terminal.all_lines(), log_terminal.all_lines());
}

#[test]
fn the_mode_can_be_changed_during_a_run() {
    let (mut live_reporter, live_terminal) = live_on_terminal(100, 30, DisplayMode::Silent);
    let all_entries = sample_journal();
    all_entries[..28].iter().for_each(|entry| live_reporter.report_entry(entry).unwrap());
    live_reporter.advance_clock(1_000).unwrap();
    assert_eq!(live_terminal.0.borrow().visible_lines().len(), 1, "one line");
    live_reporter.set_controls(ViewControls { mode: DisplayMode::Summary, ..live_reporter.controls() }).unwrap();
    all_entries[28..91].iter().for_each(|entry| live_reporter.report_entry(entry).unwrap());
    live_reporter.advance_clock(2_000).unwrap();
    insta::assert_snapshot!(live_terminal.0.borrow().visible_lines().join("\n"), @r"
      round 1, fix iteration 1: 2 of 3 patches applied; 6 fixed, 3 open
      round 1, fix iteration 2: 1 of 1 patch applied; 9 fixed, 0 open
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · summary ──────────────────────
    round 1 ●●●●●●●●● 9 new → round 2 of 3 reviewing
    ○ party                          ○ adversarial                    ○ elicitation
      waiting                          waiting                          waiting

    fixed  critical ▓ 1/1 · high ▓▓▓ 3/3 · medium ▓▓▓▓ 4/4 · low ▓ 1/1
    23k tokens · $0.17 of $5.00 · 0:02 of 2:00:00
    1-4 or v: detail level · s: stop · ?: help
    ");
}

#[test]
fn the_region_is_repainted_at_most_every_tenth_of_a_second() {
    let (mut live_reporter, live_terminal) = live_on_terminal(80, 24, DisplayMode::Streaming);
    sample_journal()[..10].iter().for_each(|entry| live_reporter.report_entry(entry).unwrap());
    live_reporter.advance_clock(1_000).unwrap();
    let write_count = || *live_terminal.1.borrow();
    let writes_before = write_count();
    for step_ms in 0..100 {
        live_reporter.report_progress(&progress_of("round-1/review/party", &format!("step {step_ms}"))).unwrap();
        live_reporter.advance_clock(1_000 + step_ms).unwrap();
    }
    assert_eq!(write_count() - writes_before, 0);
    live_reporter.advance_clock(1_100).unwrap();
    assert_eq!(write_count() - writes_before, 1);
    assert!(live_terminal.0.borrow().visible_lines().iter().any(|line| line.ends_with("step 99")));
    // Without any news the region is not repainted until its clock moves.
    live_reporter.advance_clock(1_900).unwrap();
    assert_eq!(write_count() - writes_before, 1);
    live_reporter.advance_clock(2_000).unwrap();
    assert_eq!(write_count() - writes_before, 2);
}

#[test]
fn a_resize_repaints_the_region_below_the_log() {
    let (mut live_reporter, live_terminal) = live_on_terminal(80, 24, DisplayMode::Streaming);
    sample_journal()[..12].iter().for_each(|entry| live_reporter.report_entry(entry).unwrap());
    let (mut line_reporter, log_terminal) = lines_on_terminal(80, 24, DisplayMode::Streaming);
    sample_journal()[..12].iter().for_each(|entry| line_reporter.report_entry(entry).unwrap());
    live_reporter.resize(screen_of_width(120), 30).unwrap();
    let (all_shown, log_lines) = (live_terminal.all_lines(), log_terminal.all_lines());
    assert_eq!(all_shown[..log_lines.len()], log_lines);
    let region_lines = &all_shown[log_lines.len()..];
    assert_eq!(region_lines.iter().filter(|line| line.starts_with("── review of")).count(), 1, "{region_lines:#?}");
    assert!(
        region_lines.iter().any(|line| line.contains("party") && line.contains("adversarial")),
        "{region_lines:#?}"
    );
}

#[test]
fn a_suspended_region_is_not_painted() {
    let (mut live_reporter, live_terminal) = live_on_terminal(80, 24, DisplayMode::Streaming);
    let all_entries = sample_journal();
    all_entries[..12].iter().for_each(|entry| live_reporter.report_entry(entry).unwrap());
    live_reporter.suspend_region().unwrap();
    let lines_before = live_terminal.0.borrow().all_lines.clone();
    live_reporter.advance_clock(60_000).unwrap();
    assert_eq!(live_terminal.0.borrow().all_lines, lines_before);
    live_reporter.report_entry(&all_entries[13]).unwrap();
    assert!(live_terminal.0.borrow().visible_lines().contains(&"  ✓ adversarial   4 findings"));
    live_reporter.restore_region().unwrap();
    assert!(live_terminal.0.borrow().visible_lines().last().unwrap().starts_with("1-4 or v"));
    live_reporter.disconnect();
    let lines_before = live_terminal.0.borrow().all_lines.clone();
    all_entries[14..].iter().for_each(|entry| live_reporter.report_entry(entry).unwrap());
    assert_eq!(live_terminal.0.borrow().all_lines, lines_before);
}
