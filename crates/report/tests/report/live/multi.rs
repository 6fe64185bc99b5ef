//! The live view of several runs: its rows on any screen, and how they are painted.

use tribunal_report::{
    DisplayMode, RunLabel, Screen,
    live::{LiveScreen, MultiLiveReporter, MultiRunBoard, MultiRunSubject, RunRowEnding, ViewControls},
};
use tribunal_workflows::runs::types::RunEvent;
use unicode_width::UnicodeWidthStr;

use super::{painting::SharedTerminal, sample_journal, screen_of_width};

const CONTROLS_WITH_KEYS: ViewControls =
    ViewControls { mode: DisplayMode::Summary, reads_keys: true, shows_help: false, is_stopping: false };

/// A run in its first review, one that fixes, one that has ended, one that could not start, and one that is queued.
fn board_of_five() -> MultiRunBoard {
    let subject_titles = [
        "_bmad-output/planning-artifacts/architecture.md",
        "docs/plan.md",
        "prd.md",
        "docs/\u{202e}notes.md",
        "change main...feature",
    ];
    let mut board = MultiRunBoard::new(CONTROLS_WITH_KEYS, &subject_titles.map(String::from));
    for (run_index, last_seq) in [(0, 12), (1, 56), (2, 152)] {
        board.start_run(run_index);
        let journal = sample_journal();
        journal.iter().filter(|entry| entry.seq <= last_seq).for_each(|entry| board.track_entry(run_index, entry));
    }
    board.end_run(2, RunRowEnding::Recorded);
    board.end_run(3, RunRowEnding::NotStarted);
    board.advance_run_clock(0, 14_500);
    board.advance_run_clock(1, 3_723_000);
    board.advance_clock(3_730_000);
    board
}

fn draw_on_screens(board: &MultiRunBoard, max_lines: usize) -> String {
    let mut drawn = String::new();
    for columns in [120, 80, 60, 30] {
        drawn += &format!("--- {columns} columns\n");
        for frame_line in board.draw_frame(&screen_of_width(columns), max_lines) {
            drawn += &format!("{frame_line}\n");
        }
    }
    drawn
}

#[test]
fn one_row_for_each_run_and_a_total() {
    insta::assert_snapshot!(draw_on_screens(&board_of_five(), 16));
}

#[test]
fn with_more_runs_than_lines_the_working_ones_are_shown() {
    let subject_titles: Vec<String> = (1..=30).map(|number| format!("docs/chapter-{number}.md")).collect();
    let mut board = MultiRunBoard::new(CONTROLS_WITH_KEYS, &subject_titles);
    (0..12).for_each(|run_index| {
        board.start_run(run_index);
        board.track_entry(run_index, &sample_journal()[0]);
    });
    (0..10).for_each(|run_index| board.end_run(run_index, RunRowEnding::BrokeOff));
    insta::assert_snapshot!(board.draw_frame(&screen_of_width(80), 8).join("\n"));
    for max_lines in 0..40 {
        let frame = board.draw_frame(&screen_of_width(80), max_lines);
        assert!(frame.len() <= max_lines, "{frame:#?}");
        if max_lines >= 6 {
            assert!(frame.iter().any(|line| line.contains("chapter-11.md")), "{max_lines}: {frame:#?}");
            assert!(frame.iter().any(|line| line.starts_with("  total")), "{max_lines}: {frame:#?}");
        }
        if (6..31).contains(&max_lines) {
            assert!(frame.iter().any(|line| line.contains("… and ")), "{max_lines}: {frame:#?}");
        }
    }
}

#[test]
fn no_line_is_wider_than_the_screen_or_carries_control_characters() {
    let mut board = board_of_five();
    for (shows_help, is_stopping) in [(false, false), (true, false), (false, true)] {
        (board.controls.shows_help, board.controls.is_stopping) = (shows_help, is_stopping);
        for columns in 1..140 {
            for frame_line in board.draw_frame(&screen_of_width(columns), 20) {
                assert!(frame_line.width() < columns.max(2), "{columns}: {frame_line}");
                assert!(!frame_line.contains(['\u{202e}', '\x1b']), "{frame_line:?}");
            }
        }
    }
}

#[test]
fn the_silent_mode_has_one_line() {
    let mut board = board_of_five();
    board.controls.mode = DisplayMode::Silent;
    let frame = board.draw_frame(&screen_of_width(80), 16);
    assert_eq!(frame.len(), 1);
    assert!(frame[0].starts_with("! runs: 2 of 5 ended · "), "{frame:?}");
}

fn reporter_of_two(columns: usize, rows: usize) -> (MultiLiveReporter<SharedTerminal>, SharedTerminal) {
    let shared = SharedTerminal::new_terminal(columns, rows);
    let labels = RunLabel::for_subjects(&["prd".to_string(), "plan".to_string()]);
    let titles = ["prd.md", "plan.md"];
    let subjects: Vec<MultiRunSubject> =
        titles.iter().zip(labels).map(|(title, label)| MultiRunSubject { title: title.to_string(), label }).collect();
    let screen: Screen = screen_of_width(columns);
    (MultiLiveReporter::new(shared.clone(), screen, rows, CONTROLS_WITH_KEYS, &subjects), shared)
}

#[test]
fn closing_lines_scroll_above_one_region_and_the_region_goes_at_the_end() {
    for (columns, rows) in [(120, 40), (80, 24), (60, 12), (30, 8)] {
        let (mut reporter, terminal) = reporter_of_two(columns, rows);
        for run_index in 0..2 {
            reporter.start_run(run_index).unwrap();
            for entry in sample_journal() {
                reporter.report_entry(run_index, &entry).unwrap();
                reporter.advance_run_clock(run_index, entry.at.awake_ms);
                reporter.advance_clock(entry.seq * 1_000).unwrap();
                let shown_lines = terminal.all_lines();
                let region_tops = shown_lines.iter().filter(|line| line.starts_with("── 2 runs")).count();
                assert!(region_tops <= 1, "{shown_lines:#?}");
                if matches!(entry.event, RunEvent::RunFinished(_)) {
                    assert!(shown_lines.iter().any(|line| line.contains(" │ resolved: ")), "{shown_lines:#?}");
                }
            }
            reporter.end_run(run_index, RunRowEnding::Recorded).unwrap();
        }
        reporter.suspend_region().unwrap();
        let final_lines = terminal.all_lines();
        let is_of_region = |line: &String| line.starts_with(['─', '▸', '✓']) || line.starts_with("  total");
        assert!(!final_lines.iter().any(is_of_region), "{final_lines:#?}");
    }
}

#[test]
fn notices_are_wrapped_behind_their_label() {
    let (mut reporter, terminal) = reporter_of_two(60, 30);
    let notice_text = "error: a message that is longer than sixty columns leave room for\n  help: try again";
    reporter.write_notice(1, notice_text).unwrap();
    let shown_lines = terminal.all_lines();
    assert_eq!(shown_lines[0], "plan      │ error: a message that is longer than sixty");
    assert_eq!(shown_lines[1], "plan      │   columns leave room for");
    assert_eq!(shown_lines[2], "plan      │   help: try again");
}

#[test]
fn the_mode_holds_for_all_runs_from_then_on() {
    let (mut reporter, terminal) = reporter_of_two(100, 60);
    let journal = sample_journal();
    reporter.report_entry(0, &journal[0]).unwrap();
    reporter.set_controls(ViewControls { mode: DisplayMode::Verbose, ..reporter.controls() }).unwrap();
    journal[..12].iter().for_each(|entry| reporter.report_entry(1, entry).unwrap());
    assert!(terminal.all_lines().iter().any(|line| line.contains(" │   > started")), "{:#?}", terminal.all_lines());
}
