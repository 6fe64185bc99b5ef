//! Frames of the recorded run at several moments.

use proptest::prelude::*;
use tribunal_report::{
    DisplayMode, Screen,
    live::{LiveBoard, ViewControls},
};
use tribunal_workflows::{
    findings::subject::Subject,
    review::event::ReviewEvent,
    runs::{
        kinds::RunOrder,
        types::{RunEvent, find_event},
    },
};
use unicode_width::UnicodeWidthChar;

use super::{progress_of, sample_journal, screen_of_width};
use crate::events::review_event_mut;

const CONTROLS_WITH_KEYS: ViewControls =
    ViewControls { mode: DisplayMode::Streaming, reads_keys: true, shows_help: false, is_stopping: false };

fn board_at(last_seq: u64) -> LiveBoard {
    let mut live_board = LiveBoard::new(CONTROLS_WITH_KEYS);
    sample_journal().iter().filter(|entry| entry.seq <= last_seq).for_each(|entry| live_board.track_entry(entry));
    live_board
}

/// Two seats are working, one has answered.
fn board_mid_panel() -> LiveBoard {
    let mut live_board = board_at(12);
    live_board.advance_clock(12_000);
    let progress_text = "recalculating FR7 and NFR3: 60-second checks, 4 minutes of downtime a month";
    live_board.note_progress(&progress_of("round-1/review/adversarial", progress_text));
    live_board.advance_clock(14_500);
    live_board
}

/// One patch was refused, one is landing, and one fixer is still working.
fn board_mid_fix() -> LiveBoard {
    let mut live_board = board_at(56);
    live_board.advance_clock(90_000);
    live_board.note_progress(&progress_of("round-1/fix-1/fix/1", "rewriting FR17"));
    live_board.advance_clock(95_000);
    live_board
}

/// Draws the same moment on screens of 120, 80, 50 and 30 columns.
fn draw_on_screens(live_board: &LiveBoard) -> String {
    let mut drawn = String::new();
    for columns in [120, 80, 50, 30] {
        drawn += &format!("--- {columns} columns\n");
        for frame_line in live_board.draw_frame(&screen_of_width(columns), 16) {
            drawn += &format!("{frame_line}\n");
        }
    }
    drawn
}

#[test]
fn in_the_middle_of_a_panel() {
    insta::assert_snapshot!(draw_on_screens(&board_mid_panel()));
}

#[test]
fn in_the_middle_of_a_fix_iteration() {
    insta::assert_snapshot!(draw_on_screens(&board_mid_fix()));
}

#[test]
fn in_the_second_round() {
    insta::assert_snapshot!(draw_on_screens(&board_at(100)));
}

#[test]
fn at_the_end() {
    insta::assert_snapshot!(draw_on_screens(&board_at(152)));
}

/// A moment in round 1 with its confidence.
fn board_with_confidence() -> LiveBoard {
    let mut live_board = board_at(56);
    let mut entry = sample_journal().remove(55);
    let confidence = tribunal_testkit::samples::sample_confidence();
    entry.event = RunEvent::from_workflow(ReviewEvent::ConfidenceCalculated { round: 1, confidence });
    live_board.track_entry(&entry);
    live_board
}

#[test]
fn confidence_is_shown_above_the_budget() {
    for columns in [120, 60, 40] {
        let frame_lines = board_with_confidence().draw_frame(&screen_of_width(columns), 16);
        let line_index = frame_lines.iter().position(|line| line == "confidence 83 of 100").unwrap();
        assert!(
            frame_lines[line_index - 1].starts_with("fixed") && frame_lines[line_index + 1].contains("tokens"),
            "{frame_lines:?}"
        );
    }
}

#[test]
fn a_low_screen_keeps_what_matters_most() {
    let live_board = board_mid_fix();
    let frames: Vec<String> = [16, 9, 7, 6, 5, 1]
        .map(|height| {
            format!("--- {height} rows\n{}\n", live_board.draw_frame(&screen_of_width(80), height).join("\n"))
        })
        .into();
    insta::assert_snapshot!(frames.concat());
}

#[test]
fn help_explains_keys_and_symbols() {
    let mut live_board = board_mid_panel();
    live_board.controls.shows_help = true;
    let frame_lines = live_board.draw_frame(&screen_of_width(100), 20);
    insta::assert_snapshot!(frame_lines[frame_lines.len() - 4..].join("\n"), @r"
    1-4 or v: detail level · s: stop · ?: help
    1 silent · 2 summary · 3 streaming · 4 verbose · v: next level
    s: stop after the current tasks, resume later · Ctrl-C twice: stop now
    ▓ fixed ▒ being fixed ░ open – blocked or deferred · ! no output for a minute
    ");
}

#[test]
fn an_agent_that_reports_nothing_is_marked() {
    let mut live_board = board_mid_panel();
    live_board.advance_clock(12_000 + 75_000);
    let frame_lines = live_board.draw_frame(&screen_of_width(80), 16);
    let seat_line = frame_lines.iter().find(|line| line.contains("adversarial")).unwrap();
    assert_eq!(seat_line, "! adversarial      1:26  no output for 1:15 · recalculating FR7 and NFR3:…");
    assert!(live_board.draw_frame(&screen_of_width(30), 16)[0].starts_with("! "));
}

#[test]
fn a_silent_view_is_one_line() {
    let mut live_board = board_mid_fix();
    live_board.controls.mode = DisplayMode::Silent;
    insta::assert_snapshot!(
        live_board.draw_frame(&screen_of_width(100), 20).join("\n"),
        @"▸ prd-86kc · round 1/3 fixing 1/3 · 9 open, 0 fixed · 19k tokens, $0.14 · 1:35"
    );
}

#[test]
fn colour_adds_nothing_but_colour() {
    for columns in [30, 80, 120] {
        let plain_frame = board_mid_fix().draw_frame(&screen_of_width(columns), 20);
        let coloured_frame = board_mid_fix().draw_frame(&Screen { use_colour: true, ..screen_of_width(columns) }, 20);
        assert_ne!(plain_frame, coloured_frame);
        let stripped: Vec<String> = coloured_frame.iter().map(|line| strip_colour(line)).collect();
        assert_eq!(stripped, plain_frame);
    }
}

/// Removes our own colour codes, and nothing else.
fn strip_colour(painted_line: &str) -> String {
    ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"]
        .iter()
        .fold(painted_line.to_string(), |painted_line, colour_code| painted_line.replace(colour_code, ""))
}

/// Any text, with many parts that a terminal would obey.
fn any_hostile_text() -> impl Strategy<Value = String> {
    let hostile_parts = proptest::sample::select(vec![
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
    let any_character = proptest::char::any().prop_map(String::from);
    proptest::collection::vec(prop_oneof![hostile_parts.prop_map(String::from), any_character], 0..80)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn every_frame_fits_its_screen(
        upto in 0u64..=152,
        columns in 1usize..200,
        rows in 1usize..60,
        text in any_hostile_text(),
        use_colour: bool,
        shows_help: bool,
    ) {
        let mut board = LiveBoard::new(ViewControls { shows_help, ..CONTROLS_WITH_KEYS });
        for mut entry in sample_journal().into_iter().filter(|entry| entry.seq <= upto) {
            // Text of agents and documents reaches the view in other ways, too.
            match &mut entry.event {
                RunEvent::RunStarted { order: RunOrder::Review(order), .. } => {
                    order.subject = Subject::from_path(&format!("{text}.md"), None);
                }
                run_event => {
                    if let Some(ReviewEvent::SeatIncomplete { fault, .. }) = review_event_mut(run_event) {
                        fault.detail.clone_from(&text);
                    }
                }
            }
            board.track_entry(&entry);
            if matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::RoundEnded { .. })) {
                let confidence = tribunal_testkit::samples::sample_confidence();
                entry.event = RunEvent::from_workflow(ReviewEvent::ConfidenceCalculated { round: 1, confidence });
                board.track_entry(&entry);
            }
            if let RunEvent::EffectStarted { key, .. } = &entry.event {
                board.note_progress(&progress_of(key.as_str(), &text));
            }
        }
        let frame = board.draw_frame(&Screen { use_colour, ..screen_of_width(columns) }, rows);
        prop_assert!(!frame.is_empty() && frame.len() <= rows, "{} lines on {rows} rows", frame.len());
        for line in frame {
            let line = strip_colour(&line);
            let wide: usize = line.chars().map(|c| c.width().unwrap_or(0)).sum();
            prop_assert!(wide <= columns, "{wide} columns on {columns}: {line:?}");
            let strange = |c: char| c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c)
                || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c);
            prop_assert!(!line.contains(strange), "{line:?}");
        }
    }
}
