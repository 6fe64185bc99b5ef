//! What is done with random bytes, one function a target: everything that reads files or answers of others is called, and what
//! must hold of its result is checked. Falling over, hanging and breaking one of these rules is a crash.
//!
//! No rule of the program is here, and nothing is written. How the targets are built and run is `cargo xtask fuzz`; what they
//! start from stands in `seeds`, a folder a target.

mod edits;

use std::borrow::Cow;
use std::io::Cursor;

use tribunal_agents::{
    answer::{self, Wanted},
    hook::{HookClient, HookEvent, Input, transcript},
};
use tribunal_bmad::{
    board::{self, State, edit},
    check,
    commands::{self, Step},
    config, criteria, documents, epics, help, is_story, layout, manifest,
    menu::{self, Shape},
    page::Page,
    paths,
    problem::Weight,
    retro, roster as agents,
    shelf::{self, Kept},
    specs, state, story as stories, toml_tree,
    verdict::{Readiness, Trace},
    yaml,
};

const PATH: &str = "_bmad-output/implementation-artifacts/1-2-log-in.md";

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What an agent said, as every kind of answer.
pub fn answer(bytes: &[u8]) {
    let text = text(bytes);
    for wanted in [Wanted::Findings, Wanted::Fixes, Wanted::Verdicts] {
        let _ = answer::parse(&text, wanted);
    }
}

/// A board, and every move of its first entries: only what is moved may change.
pub fn board(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(tree) = yaml::parse(&text) {
        spans(&text, &tree);
    }
    let board = board::read("sprint-status.yaml", &text);
    let _ = (board::next::next(&board, true), board::next::next(&board, false));
    for entry in board.entries.iter().take(6) {
        for state in State::all(&entry.key) {
            let Ok(moved) = edit::moved(&text, &entry.key, state, edit::Way::Anyway) else { continue };
            let lines: Vec<usize> = moved.moves.iter().map(|one| one.line).collect();
            edits::only_these_lines(&text, &moved.text, &lines);
            let after = board::read("sprint-status.yaml", &moved.text);
            assert_eq!(after.entry(&entry.key).and_then(|entry| entry.state), Some(state));
            assert_eq!(after.entries.len(), board.entries.len());
        }
    }
}

/// Every scalar that says where it stands stands there.
fn spans(text: &str, node: &yaml::Node) {
    if let Some(span) = &node.span {
        assert!(text.get(span.clone()).is_some(), "{span:?}");
    }
    node.items().iter().for_each(|item| spans(text, item));
    node.entries().iter().for_each(|entry| spans(text, &entry.value));
}

/// Epics, whole and in two files.
pub fn epics(bytes: &[u8]) {
    let text = text(bytes);
    let _ = epics::read(&[("epics.md", &text)]);
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = text.split_at(half);
    let _ = epics::read(&[("epics/epic-1.md", first), ("epics/epic-2.md", second)]);
    let _ = (epics::inventory("prd.md", &text), epics::ids_in(&text));
}

/// What a client tells a hook, and the session that it wrote down: both are bytes of others.
pub fn hook(bytes: &[u8]) {
    let size = bytes.len() as u64;
    for client in HookClient::all() {
        for event in HookEvent::ALL {
            let _ = Input::read(client, event, bytes);
        }
        for at_most in [size, size / 2] {
            let read = transcript::read_back(client, &mut Cursor::new(bytes), at_most);
            let tail = read.unwrap_or_else(|error| panic!("memory cannot be read: {error}"));
            assert_eq!(tail.refusal.is_some(), tail.tools_since_refusal.is_some());
        }
    }
}

/// A project's folder, its state and documents: files one behind the other, each under a line `=== its/path`.
pub fn layout(bytes: &[u8]) {
    let text = text(bytes);
    let mut shelf = Kept::default();
    for file in text.split("=== ").skip(1) {
        let (path, text) = file.split_once('\n').unwrap_or((file, ""));
        shelf.put(path.trim(), text);
    }
    let config = config::read(&shelf);
    let layout = layout::read(&shelf);
    let _ = (documents::find(&shelf, &config.folders), state::read(&shelf, &layout, &config));
    for step in Step::ALL {
        let _ = commands::of(&layout, step, "claude-code", &shelf);
    }
    checked(&shelf, &layout, &config);
    let _ = (manifest::read("manifest.yaml", &text), toml_tree::parse(&text));
}

/// Whether a project is ready, as a whole and for each step.
fn checked(shelf: &Kept, layout: &layout::Layout, config: &config::Config) {
    let documents = documents::find(shelf, &config.folders);
    let board_path = format!("{}/sprint-status.yaml", config.folders.implementation);
    let board = shelf::read(shelf, &board_path, &mut Vec::new()).map(|text| board::read(&board_path, &text));
    let input = check::Input {
        shelf,
        layout,
        config,
        board: board.as_ref(),
        board_path: &board_path,
        documents: &documents,
    };
    for step in Step::ALL.into_iter().map(Some).chain([None]) {
        let report = check::run(&input, step);
        let is_bad = report.problems.iter().any(|problem| problem.weight == Weight::Error);
        assert!(!(report.ready && (is_bad || !report.missing.is_empty())), "ready, with errors");
    }
}

/// What an agent said, as menus and questions.
pub fn menu(bytes: &[u8]) {
    let text = text(bytes);
    let lines = Page::of(&text).lines.len();
    let found = menu::detect(&text, &menu::Context::default());
    for menu in found.menus.iter().chain(found.rejected.iter().map(|rejected| &rejected.menu)) {
        assert!(1 <= menu.lines.start && menu.lines.start < menu.lines.end && menu.lines.end <= lines + 1);
        assert!(menu.options.iter().all(|option| menu.lines.contains(&option.line)));
    }
    for menu in &found.menus {
        assert!(menu.score >= menu::ENOUGH && (menu.options.len() >= 2 || menu.shape == Shape::Exit));
    }
    assert!(found.rejected.iter().all(|rejected| !rejected.because.is_empty()));
    assert!(found.questions.iter().all(|question| (1..=lines).contains(&question.line)));
    let _ = menu::shapes(&text);
}

/// The list of agents, BMAD's help and its paths: comma-separated values and what came before them.
pub fn roster(bytes: &[u8]) {
    let text = text(bytes);
    let _ = agents(&text);
    let _ = help::read("bmad-help.csv", &text);
    let _ = (paths::read("method.yaml", &text), paths::status("bmm-workflow-status.yaml", &text));
}

/// Stories, specs, reports, retrospectives and the ledger of what is deferred, and every change of a story and of the ledger.
pub fn story(bytes: &[u8]) {
    let text = text(bytes);
    let _ = stories::read(PATH, &text);
    let _ = (criteria(&text), is_story(PATH, &text));
    let _ = (specs::read("stories.yaml", &text), specs::spec("spec-1-2-log-in.md", &text));
    let _ = (Readiness::read("report.md", &text), Trace::read("trace.md", &text));
    let _ = retro::read("epic-1-retro-2026-01-01.md", &text);
    edits::story(&text);
    edits::ledger(&text);
    let page = Page::of(&text);
    for section in page.sections() {
        assert!(section.lines.end <= page.lines.len() && section.heading < section.lines.start);
    }
}
