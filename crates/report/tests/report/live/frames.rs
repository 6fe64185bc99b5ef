//! Frames of the recorded run at several moments.

use proptest::prelude::*;
use tribunal_core::event::Event;
use tribunal_report::{
    Mode, Screen,
    live::{Board, Controls},
};
use unicode_width::UnicodeWidthChar;

use super::{progress, recorded, screen};

const KEYS: Controls = Controls { mode: Mode::Streaming, keys: true, help: false, stopping: false };

fn board(upto: u64) -> Board {
    let mut board = Board::new(KEYS);
    recorded().iter().filter(|entry| entry.seq <= upto).for_each(|entry| board.see(entry));
    board
}

/// Two seats are working, one has answered.
fn mid_panel() -> Board {
    let mut board = board(12);
    board.tick(12_000);
    let text = "recalculating FR7 and NFR3: 60-second checks, 4 minutes of downtime a month";
    board.progress(&progress("round-1/review/adversarial", text));
    board.tick(14_500);
    board
}

/// One patch was refused, one is landing, and one fixer is still working.
fn mid_fix() -> Board {
    let mut board = board(56);
    board.tick(90_000);
    board.progress(&progress("round-1/fix-1/fix/1", "rewriting FR17"));
    board.tick(95_000);
    board
}

/// Draws the same moment on screens of 120, 80, 50 and 30 columns.
fn on_screens(board: &Board) -> String {
    let mut out = String::new();
    for columns in [120, 80, 50, 30] {
        out += &format!("--- {columns} columns\n");
        for line in board.frame(&screen(columns), 16) {
            out += &format!("{line}\n");
        }
    }
    out
}

#[test]
fn in_the_middle_of_a_panel() {
    insta::assert_snapshot!(on_screens(&mid_panel()));
}

#[test]
fn in_the_middle_of_a_fix_iteration() {
    insta::assert_snapshot!(on_screens(&mid_fix()));
}

#[test]
fn in_the_second_round() {
    insta::assert_snapshot!(on_screens(&board(100)));
}

#[test]
fn at_the_end() {
    insta::assert_snapshot!(on_screens(&board(152)));
}

/// A moment in round 1 with its confidence.
fn calculated() -> Board {
    let mut board = board(56);
    let mut entry = recorded().remove(55);
    entry.event =
        Event::ConfidenceCalculated { round: 1, confidence: tribunal_testkit::samples::confidence() };
    board.see(&entry);
    board
}

#[test]
fn confidence_stands_above_the_budget_with_as_many_parts_as_there_is_room_for() {
    let lines = [120, 60, 45, 40].map(|columns| {
        let frame = calculated().frame(&screen(columns), 16);
        let at = frame.iter().position(|line| line.starts_with("confidence")).unwrap();
        assert!(frame[at - 1].starts_with("fixed") && frame[at + 1].contains("tokens"), "{frame:?}");
        frame[at].clone()
    });
    insta::assert_snapshot!(lines.join("\n"), @r"
    confidence 83: validation 35/35, reviewers 15/25; memory, party not consulted
    confidence 83: validation 35/35, reviewers 15/25
    confidence 83
    confidence 83
    ");
}

#[test]
fn a_low_screen_keeps_what_matters_most() {
    let board = mid_fix();
    let frames: Vec<String> = [16, 9, 7, 6, 5, 1]
        .map(|height| format!("--- {height} rows\n{}\n", board.frame(&screen(80), height).join("\n")))
        .into();
    insta::assert_snapshot!(frames.concat());
}

#[test]
fn help_explains_keys_and_signs() {
    let mut board = mid_panel();
    board.controls.help = true;
    let frame = board.frame(&screen(100), 20);
    insta::assert_snapshot!(frame[frame.len() - 4..].join("\n"), @r"
    1-4 or v: show less or more · s stop · ? help
    1 silent · 2 summary · 3 streaming · 4 verbose · v the next
    s stop: what runs may finish, then the run is parked; Ctrl-C twice ends it now
    ▓ fixed ▒ in a fixer's hands ░ open – blocked or deferred · ! not heard of for a minute
    ");
}

#[test]
fn an_agent_that_is_not_heard_of_is_pointed_out() {
    let mut board = mid_panel();
    board.tick(12_000 + 75_000);
    let frame = board.frame(&screen(80), 16);
    let seat = frame.iter().find(|line| line.contains("adversarial")).unwrap();
    assert_eq!(seat, "! adversarial      1:26  not heard of for 1:15: recalculating FR7 and NFR3: 60…");
    assert!(board.frame(&screen(30), 16)[0].starts_with("! "));
}

#[test]
fn a_silent_view_is_one_line() {
    let mut board = mid_fix();
    board.controls.mode = Mode::Silent;
    insta::assert_snapshot!(
        board.frame(&screen(100), 20).join("\n"),
        @"▸ prd-86kc · round 1/3 fixing 1/3 · 9 open, 0 fixed · 18k tokens, 0.14 · 1:35"
    );
}

#[test]
fn colour_adds_nothing_but_colour() {
    for columns in [30, 80, 120] {
        let plain = mid_fix().frame(&screen(columns), 20);
        let coloured = mid_fix().frame(&Screen { colour: true, ..screen(columns) }, 20);
        assert_ne!(plain, coloured);
        let stripped: Vec<String> = coloured.iter().map(|line| without_colour(line)).collect();
        assert_eq!(stripped, plain);
    }
}

/// Removes our own colour codes, and nothing else.
fn without_colour(line: &str) -> String {
    ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"]
        .iter()
        .fold(line.to_string(), |line, code| line.replace(code, ""))
}

/// Any text, with many parts that a terminal would obey.
fn hostile() -> impl Strategy<Value = String> {
    let evil = proptest::sample::select(vec![
        "\x1b[2J",
        "\x1b]0;x\x07",
        "\r",
        "\n",
        "\t",
        "\u{9b}31m",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "審査",
        "🦀",
        "👩\u{200d}🔬",
        "e\u{301}",
        "\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
        " ",
        "word",
        "\u{7f}",
    ]);
    let any = proptest::char::any().prop_map(String::from);
    proptest::collection::vec(prop_oneof![evil.prop_map(String::from), any], 0..80)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn whatever_is_said_every_frame_fits_its_screen(
        upto in 0u64..=152,
        columns in 1usize..200,
        rows in 1usize..60,
        text in hostile(),
        colour: bool,
        help: bool,
    ) {
        let mut board = Board::new(Controls { help, ..KEYS });
        for mut entry in recorded().into_iter().filter(|entry| entry.seq <= upto) {
            // Text of agents and documents reaches the view in other ways, too.
            match &mut entry.event {
                Event::SeatIncomplete { fault, .. } => fault.detail.clone_from(&text),
                Event::RunStarted { settings, .. } => {
                    settings.subject = tribunal_core::subject::Subject::at(&format!("{text}.md"), None);
                }
                _ => {}
            }
            board.see(&entry);
            if matches!(entry.event, Event::RoundEnded { .. }) {
                let confidence = tribunal_testkit::samples::confidence();
                entry.event = Event::ConfidenceCalculated { round: 1, confidence };
                board.see(&entry);
            }
            if let Event::EffectStarted { key, .. } = &entry.event {
                board.progress(&progress(key.as_str(), &text));
            }
        }
        let frame = board.frame(&Screen { colour, ..screen(columns) }, rows);
        prop_assert!(!frame.is_empty() && frame.len() <= rows, "{} lines on {rows} rows", frame.len());
        for line in frame {
            let line = without_colour(&line);
            let wide: usize = line.chars().map(|c| c.width().unwrap_or(0)).sum();
            prop_assert!(wide <= columns, "{wide} columns on {columns}: {line:?}");
            let strange = |c: char| c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c)
                || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c);
            prop_assert!(!line.contains(strange), "{line:?}");
        }
    }
}
