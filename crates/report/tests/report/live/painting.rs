//! The live view on a terminal: the region appears once, and above it is exactly the log.

use std::{cell::RefCell, io, rc::Rc};

use tribunal_core::event::Event;
use tribunal_report::{Lines, Live, Mode, Reporter, live::Controls};

use super::{progress, recorded, screen, terminal::Terminal};

/// A writer to a terminal that the test can look at; it also counts the writes.
#[derive(Clone)]
struct Wire(Rc<RefCell<Terminal>>, Rc<RefCell<usize>>);

impl Wire {
    fn to(columns: usize, rows: usize) -> Wire {
        Wire(Rc::new(RefCell::new(Terminal::new(columns, rows))), Rc::default())
    }

    /// All lines that were ever shown, without the cursor's line if that is empty.
    fn lines(&self) -> Vec<String> {
        let terminal = self.0.borrow();
        let mut lines: Vec<String> = terminal.lines.iter().map(|line| line.trim_end().to_string()).collect();
        lines.pop_if(|last| last.is_empty());
        lines
    }
}

impl io::Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().feed(bytes);
        *self.1.borrow_mut() += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn wired(columns: usize, rows: usize, mode: Mode) -> (Live<Wire>, Wire) {
    let wire = Wire::to(columns, rows);
    let controls = Controls { mode, keys: true, ..Controls::default() };
    (Live::new(wire.clone(), screen(columns), rows, controls), wire)
}

/// A reporter that writes the log to the same kind of terminal without a live view.
fn plain(columns: usize, rows: usize, mode: Mode) -> (Lines<Wire>, Wire) {
    let wire = Wire::to(columns, rows);
    (Lines::new(wire.clone(), screen(columns), mode), wire)
}

fn after_every_entry(columns: usize, rows: usize, mode: Mode) {
    let (mut live, wire) = wired(columns, rows, mode);
    let (mut lines, log) = plain(columns, rows, mode);
    for (at, entry) in recorded().iter().enumerate() {
        live.entry(entry).unwrap();
        live.tick(entry.at.awake_ms + at as u64 * 1_000).unwrap();
        lines.entry(entry).unwrap();
        assert!(wire.0.borrow().cursor_shown);
        let (all, log) = (wire.lines(), log.lines());
        assert_eq!(all[..log.len()], log, "{columns} x {rows}, {mode}, entry {}", at + 1);
        let region = &all[log.len()..];
        let ended = matches!(entry.event, Event::RunFinished(_));
        assert_eq!(region.is_empty(), ended, "{region:#?}");
        assert!(region.len() <= (rows * 2 / 3).max(1), "{region:#?}");
        if columns >= 60 && rows >= 12 && mode != Mode::Silent && !ended {
            let titles = region.iter().filter(|line| line.starts_with("── review of")).count();
            assert_eq!(titles, 1, "{region:#?}");
        }
    }
}

#[test]
fn after_every_entry_the_log_stands_above_and_the_region_once_below() {
    for (columns, rows) in [(120, 40), (80, 24), (60, 12), (30, 8), (20, 4)] {
        for mode in Mode::ALL {
            after_every_entry(columns, rows, mode);
        }
    }
}

#[test]
fn the_scrollback_of_a_whole_run_is_its_log() {
    let (mut live, wire) = wired(80, 24, Mode::Streaming);
    let (mut lines, log) = plain(80, 24, Mode::Streaming);
    for entry in recorded() {
        live.entry(&entry).unwrap();
        lines.entry(&entry).unwrap();
        if let Event::EffectStarted { key, .. } = &entry.event {
            live.progress(&progress(key.as_str(), "審査中 🦀 \x1b[2J\r\n and more")).unwrap();
        }
        live.tick(entry.at.awake_ms * 50).unwrap();
    }
    assert_eq!(wire.lines(), log.lines());
}

#[test]
fn the_mode_can_be_changed_while_it_runs() {
    let (mut live, wire) = wired(100, 30, Mode::Silent);
    let all = recorded();
    all[..28].iter().for_each(|entry| live.entry(entry).unwrap());
    live.tick(1_000).unwrap();
    assert_eq!(wire.0.borrow().seen().len(), 1, "one line");
    live.control(Controls { mode: Mode::Summary, ..live.controls() }).unwrap();
    all[28..91].iter().for_each(|entry| live.entry(entry).unwrap());
    live.tick(2_000).unwrap();
    insta::assert_snapshot!(wire.0.borrow().seen().join("\n"), @r"
      round 1, fix iteration 1: patches landed: 2 of 3; 6 fixed, 3 open
      round 1, fix iteration 2: patches landed: 1 of 1; 9 fixed, 0 open
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · summary ──────────────────────
    round 1 ●●●●●●●●● 9 new → round 2 of 3 reviewing
    ○ party                          ○ adversarial                    ○ elicitation
      waits                            waits                            waits

    fixed  critical ▓ 1/1 · high ▓▓▓ 3/3 · medium ▓▓▓▓ 4/4 · low ▓ 1/1
    23k tokens · cost 0.17 of 5.00 · 0:02 of 2:00:00
    1-4 or v: show less or more · s stop · ? help
    ");
}

#[test]
fn it_is_painted_at_most_every_tenth_of_a_second() {
    let (mut live, wire) = wired(80, 24, Mode::Streaming);
    recorded()[..10].iter().for_each(|entry| live.entry(entry).unwrap());
    live.tick(1_000).unwrap();
    let writes = || *wire.1.borrow();
    let before = writes();
    for ms in 0..100 {
        live.progress(&progress("round-1/review/party", &format!("step {ms}"))).unwrap();
        live.tick(1_000 + ms).unwrap();
    }
    assert_eq!(writes() - before, 0);
    live.tick(1_100).unwrap();
    assert_eq!(writes() - before, 1);
    assert!(wire.0.borrow().seen().iter().any(|line| line.ends_with("step 99")));
    // Without any news the region is not repainted until its clock moves.
    live.tick(1_900).unwrap();
    assert_eq!(writes() - before, 1);
    live.tick(2_000).unwrap();
    assert_eq!(writes() - before, 2);
}

#[test]
fn another_size_repaints_from_the_log_s_end() {
    let (mut live, wire) = wired(80, 24, Mode::Streaming);
    recorded()[..12].iter().for_each(|entry| live.entry(entry).unwrap());
    let (mut lines, log) = plain(80, 24, Mode::Streaming);
    recorded()[..12].iter().for_each(|entry| lines.entry(entry).unwrap());
    live.resize(screen(120), 30).unwrap();
    let (all, log) = (wire.lines(), log.lines());
    assert_eq!(all[..log.len()], log);
    let region = &all[log.len()..];
    assert_eq!(region.iter().filter(|line| line.starts_with("── review of")).count(), 1, "{region:#?}");
    assert!(region.iter().any(|line| line.contains("party") && line.contains("adversarial")), "{region:#?}");
}

#[test]
fn whoever_else_has_the_terminal_is_not_painted_over() {
    let (mut live, wire) = wired(80, 24, Mode::Streaming);
    let all = recorded();
    all[..12].iter().for_each(|entry| live.entry(entry).unwrap());
    live.leave().unwrap();
    let before = wire.0.borrow().lines.clone();
    live.tick(60_000).unwrap();
    assert_eq!(wire.0.borrow().lines, before);
    live.entry(&all[13]).unwrap();
    assert!(wire.0.borrow().seen().contains(&"  ✓ adversarial   raised 4 findings"));
    live.come_back().unwrap();
    assert!(wire.0.borrow().seen().last().unwrap().starts_with("1-4 or v"));
    live.hang_up();
    let before = wire.0.borrow().lines.clone();
    all[14..].iter().for_each(|entry| live.entry(entry).unwrap());
    assert_eq!(wire.0.borrow().lines, before);
}
