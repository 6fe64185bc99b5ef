use super::{edit::*, next_action::*, *};
use crate::problem::ProblemWeight;

const BOARD: &str = "\
# generated: 05-06-2-2025 21:30
# STATUS DEFINITIONS:
#   - backlog: only in the epic's file
generated: 05-06-2-2025 21:30
project: Mill
project_key: NOKEY
tracking_system: file-system
story_location: \"{project-root}/_bmad-output/implementation-artifacts\"

development_status:
  epic-1: contexted   # the first
  1-1-grind: done
  1-2-sift:    'review'
  2-6a-bake: \"backlog\"
  epic-1-retrospective: optional

  epic-2: backlog
  2-1-knead: drafted # waits

action_items:
  - epic: 1
    action: \"grease the stone\"
    owner: Dev
    status: open
  - {id: A2, epic: 1, action: sweep, status: done}
";

fn board_key(key: &str) -> BoardKey {
    BoardKey::parse(key).unwrap()
}

fn entry_state(key_text: &str, state_text: &str) -> BoardEntryState {
    BoardEntryState::parse(&board_key(key_text), state_text).unwrap()
}

fn render_problems(board_text: &str) -> String {
    read_board("b.yaml", board_text).problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn a_board_is_read_in_its_order_with_older_words_and_quotes() {
    let board = read_board("b.yaml", BOARD);
    let rendered: Vec<String> = board
        .entries
        .iter()
        .map(|entry| format!("{} {} {}", entry.line, entry.key, entry.state.map_or("?", BoardEntryState::as_str)))
        .collect();
    assert_eq!(
        rendered,
        [
            "11 epic-1 in-progress",
            "12 1-1-grind done",
            "13 1-2-sift review",
            "14 2-6a-bake backlog",
            "15 epic-1-retrospective optional",
            "17 epic-2 backlog",
            "18 2-1-knead ready-for-dev",
        ]
    );
    assert_eq!(board.project.as_deref(), Some("Mill"));
    assert_eq!(board.open_action_items().map(|item| item.action.as_str()).collect::<Vec<_>>(), ["grease the stone"]);
    assert_eq!(
        render_problems(BOARD),
        "b.yaml:11: `contexted` is read as `in-progress`\nb.yaml:18: `drafted` is read as `ready-for-dev`\n"
    );
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let board_text = "development_status:\n  epic-1: sideways\n  1-1-a: ready-for-review\n  1-1-b: done\n  3-1-c: done\n  \
                retro: optional\n  \
                1-2-d:\n  epic-4: in-progress\naction_items:\n  - action: x\n    status: todo\n  - status: open\n";
    insta::assert_snapshot!(render_problems(board_text), @"
    b.yaml:2:11: unknown state `sideways` for `epic-1`
    b.yaml:3: `ready-for-review` is read as `review`
    b.yaml:4: `1-1-b` and `1-1-a` (line 3) are both story 1.1
    b.yaml:5: `3-1-c` belongs to epic 3, but there is no `epic-3` entry
    b.yaml:6:3: `retro` is not a key of an epic, story or retrospective
    b.yaml:7:8: `1-2-d` has no state
    b.yaml:8: epic 4 is in progress but has no stories
    b.yaml:10: unknown action item status `todo` (expected open, in-progress or done)
    b.yaml:12: action item without `action`
    ");
    for (board_text, expected) in [
        ("", "b.yaml:1: missing key `development_status`\n"),
        ("development_status:\n", "b.yaml:1: `development_status` has no entries\n"),
        ("- a\n", "b.yaml:1: missing key `development_status`\n"),
        ("development_status:\n  1-1-a: done\n  1-1-a: backlog\n", "b.yaml:3:3: duplicate key `1-1-a`\n"),
    ] {
        assert_eq!(render_problems(board_text), expected, "{board_text:?}");
    }
    let twins = read_board("b.yaml", "development_status:\n  1-1-a: done\n  1-1-a: backlog\n").entries;
    assert_eq!((twins[0].line, twins[0].twin_line, twins[0].state), (2, Some(3), None));
    let same_twins = read_board("b.yaml", "development_status:\n  1-1-a: done\n  1-1-a: done\n").entries;
    assert_eq!((same_twins[0].line, same_twins[0].twin_line, same_twins[0].state.is_some()), (2, Some(3), true));
    let conflicted_board = "development_status:\n<<<<<<< HEAD\n  1-1-a: done\n=======\n  1-1-a: review\n>>>>>>> x\n";
    assert_eq!(render_problems(conflicted_board), "b.yaml:2:1: unresolved merge conflict\n");
    for broken_board in ["development_status:\n\t1-1-a: done\n", "development_status: [\n", "a: b: c\n"] {
        let board = read_board("b.yaml", broken_board);
        assert!(!board.is_readable && board.problems.len() == 1, "{broken_board:?}");
        assert!(board.problems[0].line.is_some() && board.problems[0].column.is_some(), "{broken_board:?}");
        let refusal = move_entry(broken_board, &board_key("1-1-a"), entry_state("1-1-a", "done"), MoveMode::Forced);
        assert!(matches!(refusal, Err(BoardMoveRefusal::BrokenBoard { .. })));
    }
}

#[test]
fn a_move_replaces_one_value_and_keeps_its_quotes() {
    for (key_text, state_text, old_line, new_line) in [
        ("1-2-sift", "done", "  1-2-sift:    'review'\n", "  1-2-sift:    'done'\n"),
        ("epic-1-retrospective", "done", "retrospective: optional\n", "retrospective: done\n"),
        ("2-1-knead", "in-progress", "  2-1-knead: drafted # waits", "  2-1-knead: in-progress # waits"),
    ] {
        // A story of the epic is not done yet.
        let mode = if key_text.contains("retrospective") { MoveMode::Forced } else { MoveMode::InOrder };
        let moved_board = move_entry(BOARD, &board_key(key_text), entry_state(key_text, state_text), mode).unwrap();
        let expected = BOARD.replace(old_line, new_line);
        // The epic starts with its first story.
        let expected = if key_text.starts_with('2') {
            expected.replace("epic-2: backlog", "epic-2: in-progress")
        } else {
            expected
        };
        assert_eq!(moved_board.board_text, expected);
        let crlf = BOARD.replace('\n', "\r\n");
        let with_byte_order_mark = format!("\u{feff}{crlf}");
        let moved_crlf = super::edit::move_entry(
            &with_byte_order_mark,
            &board_key(key_text),
            entry_state(key_text, state_text),
            mode,
        )
        .unwrap();
        assert_eq!(moved_crlf.board_text, format!("\u{feff}{}", expected.replace('\n', "\r\n")));
    }
    let unchanged =
        move_entry(BOARD, &board_key("1-1-grind"), entry_state("1-1-grind", "done"), MoveMode::InOrder).unwrap();
    assert_eq!((unchanged.board_text.as_str(), unchanged.moves.len()), (BOARD, 0));
}

/// The table of the documentation: from, to, and whether the move is allowed.
#[test]
fn a_story_moves_only_along_these_transitions() {
    let allowed_moves = [
        "backlog>ready-for-dev",
        "backlog>in-progress",
        "ready-for-dev>in-progress",
        "in-progress>review",
        "review>done",
        "review>in-progress",
    ];
    for current in StoryStatus::ALL {
        for target in StoryStatus::ALL {
            let board_text = format!("development_status:\n  epic-1: in-progress\n  1-1-a: {current}\n");
            let outcome =
                move_entry(&board_text, &board_key("1-1-a"), BoardEntryState::Story(target), MoveMode::InOrder);
            let allowed = current == target || allowed_moves.contains(&format!("{current}>{target}").as_str());
            assert_eq!(outcome.is_ok(), allowed, "{current} > {target}: {outcome:?}");
            assert!(
                move_entry(&board_text, &board_key("1-1-a"), BoardEntryState::Story(target), MoveMode::Forced).is_ok()
            );
            let forward =
                move_entry(&board_text, &board_key("1-1-a"), BoardEntryState::Story(target), MoveMode::Forward);
            assert_eq!(forward.is_ok(), target >= current, "{current} > {target}: {forward:?}");
        }
    }
    let blocked_board = "development_status:\n  epic-1: in-progress\n  1-1-a: blocked\n";
    let review = BoardEntryState::Story(StoryStatus::Review);
    assert!(move_entry(blocked_board, &board_key("1-1-a"), review, MoveMode::Forward).is_err());
    let refusal_text = |key_text: &str, target: &str| match move_entry(
        BOARD,
        &board_key(key_text),
        entry_state(key_text, target),
        MoveMode::InOrder,
    ) {
        Err(BoardMoveRefusal::OutOfOrder { violation, .. }) => violation.to_string(),
        unexpected => format!("{unexpected:?}"),
    };
    assert_eq!(refusal_text("1-1-grind", "review"), "that moves it back");
    assert_eq!(refusal_text("2-1-knead", "done"), "that skips in-progress and review");
    assert_eq!(refusal_text("epic-1", "done"), "not all of its stories are done (1-2-sift)");
    assert_eq!(refusal_text("epic-1", "backlog"), "that moves it back");
}

#[test]
fn a_value_that_cannot_be_replaced_safely_is_refused() {
    let move_to_done =
        |board_text: &str| move_entry(board_text, &board_key("1-1-a"), entry_state("1-1-a", "done"), MoveMode::Forced);
    for board_text in [
        "development_status:\n  1-0-x: &r review\n  1-1-a: *r\n",
        "development_status:\n  1-1-a: |\n    review\n",
        "base: &b\n  1-1-a: review\ndevelopment_status:\n  <<: *b\n",
    ] {
        assert!(
            matches!(move_to_done(board_text), Err(BoardMoveRefusal::NotPlainValue { .. })),
            "{:?}",
            move_to_done(board_text)
        );
    }
    // Every alias of an anchor would move along.
    let shared_anchor = "development_status:\n  1-1-a: &r review\n  1-2-b: *r\n";
    assert!(
        matches!(move_to_done(shared_anchor), Err(BoardMoveRefusal::WouldChangeMore { .. })),
        "{:?}",
        move_to_done(shared_anchor)
    );
    let flow_board = move_to_done("development_status: {1-1-a: review, 1-2-b: review} # x").unwrap();
    assert_eq!(flow_board.board_text, "development_status: {1-1-a: done, 1-2-b: review} # x");
    let zero_padded = "development_status:\n  epic-01: backlog\n  01-1-a: review\n";
    assert_eq!(
        move_to_done(zero_padded).unwrap().board_text,
        zero_padded.replace("backlog", "in-progress").replace("review", "done")
    );
    assert!(matches!(
        move_to_done("development_status:\n  1-1-a: soon\n"),
        Err(BoardMoveRefusal::NoKnownState { line: 2, .. })
    ));
    assert!(matches!(move_to_done("development_status:\n  1-1-b: done\n"), Err(BoardMoveRefusal::UnknownKey { .. })));
    let wrong_kind = move_entry(BOARD, &board_key("epic-1"), entry_state("1-1-a", "review"), MoveMode::Forced);
    assert!(matches!(wrong_kind, Err(BoardMoveRefusal::WrongKind { .. })));
}

#[test]
fn started_stories_come_before_new_ones() {
    let next_text = |board_text: &str, creates_story_files: bool| {
        find_next_action(&read_board("", board_text), creates_story_files)
            .map_or("nothing".into(), |next| format!("{} {}", next.what.as_str(), next.key))
    };
    let board_with = |entry_states: &[(&str, &str)]| {
        let entry_lines: String = entry_states.iter().map(|(key, state)| format!("  {key}: {state}\n")).collect();
        format!("development_status:\n{entry_lines}")
    };
    let sample_entries = [
        ("1-10-k", "ready-for-dev"),
        ("1-9-j", "backlog"),
        ("2-1-a", "in-progress"),
        ("1-3-c", "review"),
        ("epic-1-retrospective", "optional"),
    ];
    assert_eq!(next_text(&board_with(&sample_entries), true), "develop 2-1-a");
    assert_eq!(
        next_text(&board_with(&[sample_entries[0], sample_entries[1], sample_entries[3]]), true),
        "review 1-3-c"
    );
    assert_eq!(next_text(&board_with(&[sample_entries[0], sample_entries[1]]), true), "develop 1-10-k");
    assert_eq!(next_text(&board_with(&[("1-10-x", "backlog"), sample_entries[1]]), true), "create 1-10-x");
    assert_eq!(next_text(&board_with(&[sample_entries[1]]), false), "develop 1-9-j");
    assert_eq!(
        next_text(&board_with(&[("1-1-a", "done"), sample_entries[4]]), true),
        "retrospective epic-1-retrospective"
    );
    assert_eq!(next_text(&board_with(&[("1-1-a", "done"), ("epic-1-retrospective", "done")]), true), "nothing");
}

fn describe_entries(board_text: &str) -> Vec<String> {
    let describe = |entry: &BoardEntry| {
        let state = entry.state.map_or("?", BoardEntryState::as_str);
        format!("{} {} {state} in {}", entry.line, entry.key, entry.epic.as_ref().map_or("-", EpicId::as_str))
    };
    read_board("b.yaml", board_text).entries.iter().map(describe).collect()
}

#[test]
fn boards_of_other_shapes_are_read() {
    let with_fields = "development_status:\n  epic-1:\n    status: done\n  1-1-a:\n    owner: x\n    status: \"wip\"\n";
    assert_eq!(describe_entries(with_fields), ["2 epic-1 done in 1", "4 1-1-a in-progress in 1"]);
    let nested = "epics:\n  epic-2:\n    status: in_progress\n    stories:\n      2-1-b: {status: done}\n    \
                  epic-2-retrospective:\n      status: not_started\n";
    assert_eq!(
        describe_entries(nested),
        ["2 epic-2 in-progress in 2", "5 2-1-b done in 2", "6 epic-2-retrospective optional in 2"]
    );
    let lists = "epics:\n  - id: \"4\"\n    status: planned\n    stories:\n      - id: \"4-1\"\n        key: dry-run\n        \
                 status: ready\nmilestones:\n  - name: M\n    status: done\n";
    assert_eq!(describe_entries(lists), ["2 epic-4 backlog in 4", "5 4-1-dry-run ready-for-dev in 4"]);
    assert_eq!(describe_entries("stories:\n  - {id: A, status: done}\n"), ["2 A done in -"]);
}

#[test]
fn keys_of_users_are_grouped_by_the_epics_of_the_board() {
    let board_text = "development_status:\n  epic-3: done\n  td-3-1a-x: done\n  3-5-words: done\n  epic-3-5: in-progress\n  \
                      3-5-1-y: blocked\n  epic-5.5: backlog\n  5.5-1-z: superseded\n  tea-testarch-ci: done\n";
    assert_eq!(
        describe_entries(board_text),
        [
            "2 epic-3 done in 3",
            "3 td-3-1a-x done in 3",
            "4 3-5-words done in 3.5",
            "5 epic-3-5 in-progress in 3-5",
            "6 3-5-1-y blocked in 3-5",
            "7 epic-5.5 backlog in 5.5",
            "8 5.5-1-z dropped in 5.5",
        ]
        .map(|line| line.replace("in 3.5", "in 3"))
    );
    let by_comments =
        "development_status:\n  # ===== Epic 1: Core =====\n  CORE-001: done\n  # Epic 2: AI\n  AI-001: todo\n";
    assert_eq!(describe_entries(by_comments), ["3 CORE-001 done in 1", "5 AI-001 backlog in 2"]);
}

#[test]
fn a_broken_line_is_named_and_does_not_hide_the_rest() {
    let board_text =
        "story_location: {project-root}/out\ndevelopment_status:\n  epic-1: done\n  1-1-a: done\n  1-1-a: done\n";
    let board = read_board("b.yaml", board_text);
    assert!(board.is_readable && board.entries.len() == 2);
    let lines: Vec<Option<usize>> = board.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(1), Some(5)]);
    assert!(board.problems.iter().all(|problem| problem.weight == ProblemWeight::Warning));
    // Of two different states neither holds.
    let board = read_board("b.yaml", &board_text.replacen("1-1-a: done", "1-1-a: review", 1));
    assert_eq!(board.entries[1].state, None);
    assert_eq!(board.problems.last().map(|problem| problem.weight), Some(ProblemWeight::Error));
}

#[test]
fn a_retrospective_is_not_done_while_its_epic_is_not() {
    let board_text = "development_status:\n  epic-1: in-progress\n  1-1-a: review\n  epic-1-retrospective: optional\n";
    let move_retro = |board_text: &str, mode| {
        move_entry(board_text, &board_key("epic-1-retrospective"), entry_state("epic-1-retrospective", "done"), mode)
    };
    let refusal = move_retro(board_text, MoveMode::InOrder);
    assert!(
        matches!(&refusal, Err(BoardMoveRefusal::OutOfOrder { violation: OrderViolation::StoriesOpen { open }, .. }) if open.len() == 1),
        "{refusal:?}"
    );
    assert!(move_retro(board_text, MoveMode::Forced).is_ok());
    assert!(move_retro(&board_text.replace("review", "done"), MoveMode::InOrder).is_ok());
}

#[test]
fn keys_with_titles_stay_apart_from_the_epic_of_the_same_number() {
    let board_text = "development_status:\n  epic-1: backlog\n  epic-1-hardening: backlog\n  1-1-a: backlog\n  \
                      epic-2-user-accounts: done\n  \
                      2-1-b: done\n  epic-3-story-1: done\n  retro-1: optional\n";
    assert_eq!(
        describe_entries(board_text),
        [
            "2 epic-1 backlog in 1",
            "3 epic-1-hardening backlog in 1-hardening",
            "4 1-1-a backlog in 1",
            "5 epic-2-user-accounts done in 2-user-accounts",
            "6 2-1-b done in 2",
            "7 epic-3-story-1 done in 3",
            "8 epic-1-retrospective optional in 1",
        ]
    );
    let moved =
        move_entry(board_text, &board_key("epic-1-hardening"), entry_state("epic-1", "in-progress"), MoveMode::Forced)
            .unwrap();
    assert!(moved.board_text.contains("epic-1: backlog\n  epic-1-hardening: in-progress\n"), "{}", moved.board_text);
    assert!(
        !read_board("b.yaml", board_text)
            .problems
            .iter()
            .any(|problem| problem.rule == "board-orphan-story" && problem.line == Some(6))
    );
}

#[test]
fn a_move_keeps_the_remark_behind_the_state() {
    let board_text = "development_status:\n  1-1-a: backlog (waiting for keys)\n  1-2-b: \"✅ Done – 60%\"\n";
    let move_to = |key_text: &str, state_text: &str| {
        move_entry(board_text, &board_key(key_text), entry_state(key_text, state_text), MoveMode::Forced)
            .unwrap()
            .board_text
    };
    assert!(move_to("1-1-a", "review").contains("1-1-a: review (waiting for keys)\n"));
    assert!(move_to("1-2-b", "review").contains("1-2-b: \"✅ review – 60%\"\n"));
    // A remark that would say something else, or a second line with the same key, keeps it from being moved.
    for board_text in [
        "development_status:\n  1-1-a: done (was blocked)\n",
        "development_status:\n  1-1-a: done\n  1-2-b: done\n  1-1-a: done\n",
    ] {
        let refusal = move_entry(board_text, &board_key("1-1-a"), entry_state("1-1-a", "backlog"), MoveMode::Forced);
        assert!(matches!(refusal, Err(BoardMoveRefusal::WouldChangeMore { .. })), "{refusal:?}");
    }
}

#[test]
fn stories_beside_the_list_are_not_lost() {
    let board_text =
        "development_status:\n  1-1-a: done\n1-2-b: backlog\nphase_2_status:\n  2-1-c: review\n  goal: done\n";
    assert_eq!(describe_entries(board_text), ["2 1-1-a done in 1", "3 1-2-b backlog in 1", "5 2-1-c review in 2"]);
    let named = "stories:\n  - story: 1-1-a\n    status: done\n  - status: in-progress\n";
    assert_eq!(describe_entries(named), ["2 1-1-a done in 1"]);
}

#[test]
fn an_entry_on_two_lines_with_one_state_is_neither_next_nor_moved() {
    let board_text = "development_status:\n  epic-1: backlog\n  1-1-a: backlog\n  1-1-a: backlog\n  1-2-b: backlog\n";
    let next_key = find_next_action(&read_board("b.yaml", board_text), false).map(|action| action.key);
    assert_eq!(next_key, Some(board_key("1-2-b")));
    let refusal = move_entry(board_text, &board_key("1-1-a"), entry_state("1-1-a", "done"), MoveMode::Forward);
    assert!(matches!(refusal, Err(BoardMoveRefusal::WouldChangeMore { .. })), "{refusal:?}");
    // An epic on two lines keeps no story from moving.
    let twin_epics = "development_status:\n  epic-1: backlog\n  epic-1: backlog\n  1-1-a: backlog\n";
    let moved = move_entry(twin_epics, &board_key("1-1-a"), entry_state("1-1-a", "done"), MoveMode::Forward);
    assert_eq!(moved.map(|moved| moved.board_text), Ok(twin_epics.replace("1-1-a: backlog", "1-1-a: done")));
}

#[test]
fn a_story_that_stands_twice_in_a_list_is_neither_next_nor_moved() {
    let list_of = |second_state: &str| {
        format!(
            "stories:\n  - id: 1-1\n    status: backlog\n  - id: 1-2\n    status: backlog\n  - id: \"1.1\"\n    \
             status: {second_state}\n"
        )
    };
    // Of two different states neither holds.
    let board = read_board("b.yaml", &list_of("done"));
    let lines: Vec<(usize, Option<usize>)> = board.entries.iter().map(|entry| (entry.line, entry.twin_line)).collect();
    assert_eq!(lines, [(2, Some(6)), (4, None)]);
    assert_eq!(board.entries[0].state, None);
    let [problem] = board.problems.as_slice() else { panic!("{:?}", board.problems) };
    assert_eq!((problem.rule, problem.weight, problem.line), ("board-duplicate-key", ProblemWeight::Error, Some(6)));
    assert_eq!(problem.what, "duplicate key `1-1`");
    // With one state it could be read, but not be moved.
    let same_text = list_of("backlog");
    let board = read_board("b.yaml", &same_text);
    assert_eq!((board.entries[0].twin_line, board.entries[0].state.is_some()), (Some(6), true));
    assert_eq!(board.problems.iter().map(|problem| problem.weight).collect::<Vec<_>>(), [ProblemWeight::Warning]);
    assert_eq!(find_next_action(&board, false).map(|action| action.key), Some(board_key("1-2")));
    let refusal = move_entry(&same_text, &board_key("1-1"), entry_state("1-1", "done"), MoveMode::Forward);
    assert!(matches!(refusal, Err(BoardMoveRefusal::WouldChangeMore { .. })), "{refusal:?}");
    let flow_list = read_board("b.yaml", "development_status: [{id: A-1, status: done}, {id: A-1, status: review}]\n");
    assert_eq!((flow_list.entries.len(), flow_list.entries[0].twin_line), (1, Some(1)));
}

#[test]
fn a_story_in_two_lists_is_no_duplicate() {
    let board_text = "current_sprint:\n  stories:\n    - {id: 1-1, status: review}\nepics:\n  - id: 1\n    status: in-progress\n    \
                      stories:\n      - {id: 1-1, status: review}\n      - {id: 1-2, status: done}\n";
    let board = read_board("b.yaml", board_text);
    assert!(board.entries.iter().all(|entry| entry.twin_line.is_none()), "{:?}", board.entries);
    assert!(board.problems.iter().all(|problem| problem.rule != "board-duplicate-key"), "{:?}", board.problems);
}
