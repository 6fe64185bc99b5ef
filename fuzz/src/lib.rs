//! What is done with random bytes, one function a target: everything that reads files or answers of others is called, and what
//! must hold of its result is checked. Falling over, hanging and breaking one of these rules is a crash.
//!
//! No rule of the program is here, and nothing is written. How the targets are built and run is `cargo xtask fuzz`; what they
//! start from stands in `seeds`, a folder a target.

mod edits;

use std::borrow::Cow;
use std::io::Cursor;

use tribunal_agents::{
    answer::{self, AnswerKind},
    hook::{HookClient, HookEvent, HookInput, transcript},
};
use tribunal_bmad::{
    board::{self, BoardEntryState, edit},
    check,
    commands::{self, BmadStep},
    config, documents, epics, help, is_story_file, layout, manifest,
    markdown::MarkdownPage,
    menu::{self, MenuShape},
    parse_roster,
    problem::ProblemWeight,
    project_files::{self, InMemoryFiles},
    project_state, read_criteria, retrospective, specs, story as stories, toml_tree,
    verdict::{ReadinessVerdict, TraceVerdict},
    workflow_paths, yaml,
};

const PATH: &str = "_bmad-output/implementation-artifacts/1-2-log-in.md";

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What an agent said, as every kind of answer.
pub fn answer(bytes: &[u8]) {
    let text = text(bytes);
    for wanted in [AnswerKind::Findings, AnswerKind::Fixes, AnswerKind::Verdicts] {
        let _ = answer::parse_answer(&text, wanted);
    }
}

/// A board, and every move of its first entries: only what is moved may change.
pub fn board(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(tree) = yaml::parse_yaml(&text) {
        spans(&text, &tree);
    }
    let board = board::read_board("sprint-status.yaml", &text);
    let _ = (board::next_action::find_next_action(&board, true), board::next_action::find_next_action(&board, false));
    for entry in board.entries.iter().take(6) {
        for state in BoardEntryState::all_for(&entry.key) {
            let Ok(moved) = edit::move_entry(&text, &entry.key, state, edit::MoveMode::Forced) else { continue };
            let lines: Vec<usize> = moved.moves.iter().map(|one| one.line).collect();
            edits::only_these_lines(&text, &moved.board_text, &lines);
            let after = board::read_board("sprint-status.yaml", &moved.board_text);
            assert_eq!(after.find_entry(&entry.key).and_then(|entry| entry.state), Some(state));
            assert_eq!(after.entries.len(), board.entries.len());
        }
    }
}

/// Every scalar that says where it stands stands there.
fn spans(text: &str, node: &yaml::YamlNode) {
    if let Some(span) = &node.span {
        assert!(text.get(span.clone()).is_some(), "{span:?}");
    }
    node.items().iter().for_each(|item| spans(text, item));
    node.entries().iter().for_each(|entry| spans(text, &entry.value));
}

/// Epics, whole and in two files.
pub fn epics(bytes: &[u8]) {
    let text = text(bytes);
    let _ = epics::read_epics(&[("epics.md", &text)]);
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = text.split_at(half);
    let _ = epics::read_epics(&[("epics/epic-1.md", first), ("epics/epic-2.md", second)]);
    let _ = (epics::read_inventory("prd.md", &text), epics::find_requirement_ids(&text));
}

/// What a client tells a hook, and the session that it wrote down: both are bytes of others.
pub fn hook(bytes: &[u8]) {
    let size = bytes.len() as u64;
    for client in HookClient::all() {
        for event in HookEvent::ALL {
            let _ = HookInput::parse(client, event, bytes);
        }
        for at_most in [size, size / 2] {
            let read = transcript::read_tail(client, &mut Cursor::new(bytes), at_most);
            let tail = read.unwrap_or_else(|error| panic!("memory cannot be read: {error}"));
            assert_eq!(tail.refusal.is_some(), tail.tools_since_refusal.is_some());
        }
    }
}

/// A project's folder, its state and documents: files one behind the other, each under a line `=== its/path`.
pub fn layout(bytes: &[u8]) {
    let text = text(bytes);
    let files = text.split("=== ").skip(1).map(|file| file.split_once('\n').unwrap_or((file, "")));
    let shelf = InMemoryFiles::from_files(files.map(|(path, text)| (path.trim(), text)));
    let config = config::read_config(&shelf);
    let layout = layout::read_layout(&shelf);
    let _ =
        (documents::find_documents(&shelf, &config.folders), project_state::survey_project(&shelf, &layout, &config));
    for step in BmadStep::ALL {
        let _ = commands::find_command(&layout, step, "claude-code", &shelf);
    }
    checked(&shelf, &layout, &config);
    let _ = (manifest::read_manifest("manifest.yaml", &text), toml_tree::parse_toml(&text));
}

/// Whether a project is ready, as a whole and for each step.
fn checked(shelf: &InMemoryFiles, layout: &layout::BmadLayout, config: &config::BmadConfig) {
    let documents = documents::find_documents(shelf, &config.folders);
    let board_path = format!("{}/sprint-status.yaml", config.folders.implementation);
    let board = project_files::read_or_report(shelf, &board_path, &mut Vec::new())
        .map(|text| board::read_board(&board_path, &text));
    let input = check::CheckInput {
        project_files: shelf,
        layout,
        config,
        board: board.as_ref(),
        board_path: &board_path,
        documents: &documents,
    };
    for step in BmadStep::ALL.into_iter().map(Some).chain([None]) {
        let report = check::check_project(&input, step);
        let is_bad = report.problems.iter().any(|problem| problem.weight == ProblemWeight::Error);
        assert!(!(report.ready && (is_bad || !report.missing.is_empty())), "ready, with errors");
    }
}

/// What an agent said, as menus and questions.
pub fn menu(bytes: &[u8]) {
    let text = text(bytes);
    let lines = MarkdownPage::parse(&text).lines.len();
    let found = menu::detect_menus(&text, &menu::MenuContext::default());
    for menu in found.menus.iter().chain(found.rejected.iter().map(|rejected| &rejected.menu)) {
        assert!(1 <= menu.lines.start && menu.lines.start < menu.lines.end && menu.lines.end <= lines + 1);
        assert!(menu.options.iter().all(|option| menu.lines.contains(&option.line)));
    }
    for menu in &found.menus {
        assert!(menu.score >= menu::MIN_SCORE && (menu.options.len() >= 2 || menu.shape == MenuShape::Exit));
    }
    assert!(found.rejected.iter().all(|rejected| !rejected.because.is_empty()));
    assert!(found.questions.iter().all(|question| (1..=lines).contains(&question.line)));
}

/// The list of agents, BMAD's help and its paths: comma-separated values and what came before them.
pub fn roster(bytes: &[u8]) {
    let text = text(bytes);
    let _ = parse_roster(&text);
    let _ = help::read_help("bmad-help.csv", &text);
    let _ = (
        workflow_paths::read_track("method.yaml", &text),
        workflow_paths::read_workflow_status("bmm-workflow-status.yaml", &text),
    );
}

/// Stories, specs, reports, retrospectives and the ledger of what is deferred, and every change of a story and of the ledger.
pub fn story(bytes: &[u8]) {
    let text = text(bytes);
    let _ = stories::read_story(PATH, &text);
    let _ = (read_criteria(&text), is_story_file(PATH, &text));
    let _ = (specs::read_stories("stories.yaml", &text), specs::read_spec("spec-1-2-log-in.md", &text));
    let _ = (ReadinessVerdict::from_report("report.md", &text), TraceVerdict::from_report("trace.md", &text));
    let _ = retrospective::read_retrospective("epic-1-retro-2026-01-01.md", &text);
    edits::story(&text);
    edits::ledger(&text);
    let page = MarkdownPage::parse(&text);
    for section in page.sections() {
        assert!(section.line_range.end <= page.lines.len() && section.heading_index < section.line_range.start);
    }
}
