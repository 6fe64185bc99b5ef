use super::{edit::*, next::*, *};

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

fn key(key: &str) -> Key {
    Key::parse(key).unwrap()
}

fn state(of: &str, said: &str) -> State {
    State::parse(&key(of), said).unwrap()
}

fn problems(text: &str) -> String {
    read("b.yaml", text).problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn a_board_is_read_in_its_order_with_older_words_and_quotes() {
    let board = read("b.yaml", BOARD);
    let drawn: Vec<String> = board
        .entries
        .iter()
        .map(|entry| format!("{} {} {}", entry.line, entry.key, entry.state.map_or("?", State::as_str)))
        .collect();
    assert_eq!(
        drawn,
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
    assert_eq!(
        board.open_action_items().map(|item| item.action.as_str()).collect::<Vec<_>>(),
        ["grease the stone"]
    );
    assert_eq!(
        problems(BOARD),
        "b.yaml:11: `contexted` is read as `in-progress`\nb.yaml:18: `drafted` is read as `ready-for-dev`\n"
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let text = "development_status:\n  epic-1: started\n  1-1-a: ready-for-review\n  1-1-b: done\n  3-1-c: done\n  retro: optional\n  \
                1-2-d:\n  epic-4: in-progress\naction_items:\n  - action: x\n    status: todo\n  - status: open\n";
    insta::assert_snapshot!(problems(text), @r"
    b.yaml:2:11: `started` is no state of `epic-1`
    b.yaml:3:10: `ready-for-review` is no state of `1-1-a`
    b.yaml:4: `1-1-b` and `1-1-a` (line 3) are both story 1.1
    b.yaml:5: `3-1-c` belongs to epic 3, which has no line `epic-3`
    b.yaml:6:3: `retro` is no key of an epic, a story or a retrospective
    b.yaml:7:8: `1-2-d` has no state
    b.yaml:8: epic 4 is in progress and has no stories
    b.yaml:10: `todo` is no state of an action item (open, in-progress, done)
    b.yaml:12: an action item says no `action`
    ");
    for (text, said) in [
        ("", "b.yaml:1: there is no `development_status`\n"),
        ("development_status:\n", "b.yaml:1: `development_status` has no entries\n"),
        ("- a\n", "b.yaml:1: there is no `development_status`\n"),
        (
            "development_status:\n  1-1-a: done\n  1-1-a: backlog\n",
            "b.yaml:3:3: `1-1-a` stands here for the second time\n",
        ),
    ] {
        assert_eq!(problems(text), said, "{text:?}");
    }
    let conflict = "development_status:\n<<<<<<< HEAD\n  1-1-a: done\n=======\n  1-1-a: review\n>>>>>>> x\n";
    assert_eq!(problems(conflict), "b.yaml:2:1: a merge conflict is not resolved here\n");
    for broken in ["development_status:\n\t1-1-a: done\n", "development_status: [\n", "a: b: c\n"] {
        let board = read("b.yaml", broken);
        assert!(!board.readable && board.problems.len() == 1, "{broken:?}");
        assert!(board.problems[0].line.is_some() && board.problems[0].column.is_some(), "{broken:?}");
        let refused = moved(broken, &key("1-1-a"), state("1-1-a", "done"), Way::Anyway);
        assert!(matches!(refused, Err(Refused::Broken { .. })));
    }
}

#[test]
fn a_move_exchanges_one_value_and_keeps_its_quotes() {
    for (what, to, old, new) in [
        ("1-2-sift", "done", "  1-2-sift:    'review'\n", "  1-2-sift:    'done'\n"),
        ("epic-1-retrospective", "done", "retrospective: optional\n", "retrospective: done\n"),
        ("2-1-knead", "in-progress", "  2-1-knead: drafted # waits", "  2-1-knead: in-progress # waits"),
    ] {
        let moved = moved(BOARD, &key(what), state(what, to), Way::Along).unwrap();
        let expected = BOARD.replace(old, new);
        // The epic starts with its first story.
        let expected = if what.starts_with('2') {
            expected.replace("epic-2: backlog", "epic-2: in-progress")
        } else {
            expected
        };
        assert_eq!(moved.text, expected);
        let crlf = BOARD.replace('\n', "\r\n");
        let with_mark = format!("\u{feff}{crlf}");
        let out = super::edit::moved(&with_mark, &key(what), state(what, to), Way::Along).unwrap();
        assert_eq!(out.text, format!("\u{feff}{}", expected.replace('\n', "\r\n")));
    }
    let again = moved(BOARD, &key("1-1-grind"), state("1-1-grind", "done"), Way::Along).unwrap();
    assert_eq!((again.text.as_str(), again.moves.len()), (BOARD, 0));
}

/// The table of the documentation: from, to, and whether the move is allowed.
#[test]
fn the_arrows_are_these() {
    let along = [
        "backlog>ready-for-dev",
        "backlog>in-progress",
        "ready-for-dev>in-progress",
        "in-progress>review",
        "review>done",
        "review>in-progress",
    ];
    for from in StoryStatus::ALL {
        for to in StoryStatus::ALL {
            let text = format!("development_status:\n  epic-1: in-progress\n  1-1-a: {from}\n");
            let out = moved(&text, &key("1-1-a"), State::Story(to), Way::Along);
            let allowed = from == to || along.contains(&format!("{from}>{to}").as_str());
            assert_eq!(out.is_ok(), allowed, "{from} > {to}: {out:?}");
            assert!(moved(&text, &key("1-1-a"), State::Story(to), Way::Anyway).is_ok());
        }
    }
    let said = |what: &str, to: &str| match moved(BOARD, &key(what), state(what, to), Way::Along) {
        Err(Refused::Against { why, .. }) => why.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(said("1-1-grind", "review"), "that goes back");
    assert_eq!(said("2-1-knead", "done"), "that skips in-progress and review");
    assert_eq!(said("epic-1", "done"), "not all of its stories are done: 1-2-sift");
    assert_eq!(said("epic-1", "backlog"), "that goes back");
}

#[test]
fn what_cannot_be_exchanged_safely_is_refused() {
    let said = |text: &str| moved(text, &key("1-1-a"), state("1-1-a", "done"), Way::Anyway);
    for text in [
        "development_status:\n  1-0-x: &r review\n  1-1-a: *r\n",
        "development_status:\n  1-1-a: |\n    review\n",
        "base: &b\n  1-1-a: review\ndevelopment_status:\n  <<: *b\n",
    ] {
        assert!(matches!(said(text), Err(Refused::NotPlain { .. })), "{:?}", said(text));
    }
    // Every alias of an anchor would move along.
    let shared = "development_status:\n  1-1-a: &r review\n  1-2-b: *r\n";
    assert!(matches!(said(shared), Err(Refused::Unsafe { .. })), "{:?}", said(shared));
    let flow = said("development_status: {1-1-a: review, 1-2-b: review} # x").unwrap();
    assert_eq!(flow.text, "development_status: {1-1-a: done, 1-2-b: review} # x");
    let zeros = "development_status:\n  epic-01: backlog\n  01-1-a: review\n";
    assert_eq!(said(zeros).unwrap().text, zeros.replace("backlog", "in-progress").replace("review", "done"));
    assert!(matches!(said("development_status:\n  1-1-a: soon\n"), Err(Refused::NoState { line: 2, .. })));
    assert!(matches!(said("development_status:\n  1-1-b: done\n"), Err(Refused::Unknown { .. })));
    let wrong = moved(BOARD, &key("epic-1"), state("1-1-a", "review"), Way::Anyway);
    assert!(matches!(wrong, Err(Refused::NotOfItsKind { .. })));
}

#[test]
fn what_was_begun_comes_before_what_was_not() {
    let said = |text: &str, creates: bool| {
        next(&read("", text), creates)
            .map_or("nothing".into(), |next| format!("{} {}", next.what.as_str(), next.key))
    };
    let board = |states: &[(&str, &str)]| {
        let lines: String = states.iter().map(|(key, state)| format!("  {key}: {state}\n")).collect();
        format!("development_status:\n{lines}")
    };
    let all = [
        ("1-10-k", "ready-for-dev"),
        ("1-9-j", "backlog"),
        ("2-1-a", "in-progress"),
        ("1-3-c", "review"),
        ("epic-1-retrospective", "optional"),
    ];
    assert_eq!(said(&board(&all), true), "develop 2-1-a");
    assert_eq!(said(&board(&[all[0], all[1], all[3]]), true), "review 1-3-c");
    assert_eq!(said(&board(&[all[0], all[1]]), true), "develop 1-10-k");
    assert_eq!(said(&board(&[("1-10-x", "backlog"), all[1]]), true), "create 1-9-j");
    assert_eq!(said(&board(&[all[1]]), false), "develop 1-9-j");
    assert_eq!(said(&board(&[("1-1-a", "done"), all[4]]), true), "retrospective epic-1-retrospective");
    assert_eq!(said(&board(&[("1-1-a", "done"), ("epic-1-retrospective", "done")]), true), "nothing");
}
