//! A recorded run as people see it: piped, on a wide terminal, on a narrow one, in colour.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_core::view::RunView;
use tribunal_report::{JsonLines, Lines, Reporter, Screen, tables};
use tribunal_testkit::{RECORDED, entries};

fn drawn(screen: Screen) -> String {
    let mut out = Vec::new();
    let mut lines = Lines::new(&mut out, screen);
    for entry in entries(RECORDED[0].1) {
        lines.entry(&entry).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn piped() {
    insta::assert_snapshot!(drawn(Screen::default()));
}

#[test]
fn on_a_narrow_terminal_no_line_is_wider_than_it() {
    let text = drawn(Screen { colour: false, width: Some(60), ..Screen::default() });
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 60).collect();
    assert_eq!(wide, Vec::<&str>::new());
    insta::assert_snapshot!(text);
}

#[test]
fn in_colour_it_says_the_same() {
    let coloured = drawn(Screen { colour: true, width: Some(100), ..Screen::default() });
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find('m').unwrap() + 1..];
    }
    plain.push_str(rest);
    assert_eq!(plain, drawn(Screen { colour: false, width: Some(100), ..Screen::default() }));
    assert_ne!(plain, coloured);
}

#[test]
fn for_programs_every_line_is_the_entry_itself() {
    let mut out = Vec::new();
    let mut lines = JsonLines::new(&mut out);
    for entry in entries(RECORDED[0].1) {
        lines.entry(&entry).unwrap();
    }
    assert_eq!(String::from_utf8(out).unwrap(), RECORDED[0].1);
}

#[test]
fn in_a_list_of_runs() {
    let view = RunView::of(&entries(RECORDED[0].1));
    let standing = tables::Standing { view: &view, live: false };
    let text = tables::runs(&[standing], &Screen::default());
    insta::assert_snapshot!(text + &tables::status(&standing, &Screen::default()));
}
