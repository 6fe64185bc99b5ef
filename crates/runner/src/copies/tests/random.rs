//! Random trees in random states: a workspace is the work tree without ignored files, and its changes are exactly the edits.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum State {
    Committed,
    Staged,
    Edited,
    StagedAndEdited,
    Untracked,
    Ignored,
    Removed,
    Deleted,
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Nothing,
    Change,
    Append,
    Remove,
    Replace,
    Touch,
}

#[derive(Clone, Debug)]
struct Case {
    path: String,
    text: String,
    executable: bool,
    state: State,
    edit: Edit,
}

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("-dash".to_string()),
        Just("with space".to_string()),
        Just("ünï-cødé".to_string()),
        Just("quote\"d".to_string()),
        Just("tab\there".to_string()),
        Just("line\nend".to_string()),
        Just("100644 x 0\ttrick".to_string()),
        Just("*".to_string()),
        Just(":(top)x".to_string()),
        Just("back\\slash".to_string()),
        "[a-d]{1,2}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("one\r\ntwo\r\n".to_string()), "[a-z \n\u{0}é]{0,40}"]
}

fn case() -> impl Strategy<Value = Case> {
    use State::*;
    let state = prop::sample::select(vec![
        Committed,
        Staged,
        Edited,
        StagedAndEdited,
        Untracked,
        Ignored,
        Removed,
        Deleted,
    ]);
    let edit = prop::sample::select(vec![
        Edit::Nothing,
        Edit::Change,
        Edit::Append,
        Edit::Remove,
        Edit::Replace,
        Edit::Touch,
    ]);
    let path = prop::collection::vec(part(), 1..4).prop_map(|parts| parts.join("/"));
    (path, text(), any::<bool>(), state, edit).prop_map(|(path, text, executable, state, edit)| Case {
        path,
        text,
        executable,
        state,
        edit,
    })
}

/// Files whose names do not conflict: none is a directory of another.
fn cases() -> impl Strategy<Value = Vec<Case>> {
    prop::collection::vec(case(), 1..16).prop_map(|cases| {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let number = |(number, mut case): (usize, Case)| {
            // Directories get another ending than files.
            case.path = case.path.replace('/', ".d/");
            case.path = match case.state {
                State::Ignored => format!("{}{number}.log", case.path),
                _ => case.path,
            };
            taken.insert(case.path.clone()).then_some(case)
        };
        cases.into_iter().enumerate().filter_map(number).collect()
    })
}

/// Creates a repository with these files in their states.
fn arrange(place: &Place, cases: &[Case]) {
    let put = |case: &Case, text: &str| {
        let path = place.root().join(&case.path);
        write(&path, text);
        if case.executable {
            make_executable(&path);
        }
    };
    place.write(&[(".gitignore", "*.log\n"), ("subject.md", "subject\n")]);
    place.git(&["init", "-q"]);
    for case in cases {
        match case.state {
            State::Committed => put(case, &case.text),
            State::Untracked | State::Ignored => {}
            _ => put(case, &format!("{}before", case.text)),
        }
    }
    place.commit();
    for case in cases {
        match case.state {
            State::Staged => put(case, &case.text),
            State::StagedAndEdited => put(case, "staged"),
            State::Removed => fs::remove_file(place.root().join(&case.path)).unwrap(),
            _ => {}
        }
    }
    place.git(&["add", "-A"]);
    for case in cases {
        match case.state {
            State::Edited | State::StagedAndEdited | State::Untracked | State::Ignored => {
                put(case, &case.text)
            }
            State::Deleted => fs::remove_file(place.root().join(&case.path)).unwrap(),
            State::Committed | State::Staged | State::Removed => {}
        }
    }
}

/// Edits the tree as an agent would and returns the paths that differ now.
fn edit(tree: &Path, cases: &[Case]) -> BTreeSet<String> {
    let mut edited = BTreeSet::new();
    for case in cases {
        let path = tree.join(&case.path);
        let Ok(bytes) = fs::read(&path) else { continue };
        let changed = match case.edit {
            Edit::Nothing => false,
            Edit::Touch => {
                fs::write(&path, &bytes).unwrap();
                false
            }
            // The same length, unless the file is empty.
            Edit::Change => {
                let other: Vec<u8> = bytes.iter().map(|byte| byte ^ 1).collect();
                fs::write(&path, other).unwrap();
                !bytes.is_empty()
            }
            Edit::Append => {
                fs::write(&path, [&bytes[..], b"!"].concat()).unwrap();
                true
            }
            Edit::Remove => {
                fs::remove_file(&path).unwrap();
                true
            }
            Edit::Replace => {
                fs::remove_file(&path).unwrap();
                fs::write(&path, "something else altogether").unwrap();
                true
            }
        };
        if changed {
            edited.insert(case.path.clone());
        }
    }
    edited
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_copy_is_the_work_tree_and_its_changes_are_what_was_done(cases in cases()) {
        let place = Place::plain(&[]);
        arrange(&place, &cases);
        let (git, before) = (everything(&place.root().join(".git")), things(&place.root()));
        let (copy, made) = place.copy(&["subject.md"]);
        let mut expected = before.clone();
        expected.retain(|path, _| !path.ends_with(".log"));
        prop_assert_eq!(things(&copy.tree()), expected);
        prop_assert_eq!(made.remarks, [""; 0]);
        prop_assert_eq!(copy.changes().unwrap(), BTreeMap::new());
        prop_assert_eq!(everything(&place.root().join(".git")), git);
        let status = ["status", "--porcelain", "-z", "-uall"];
        prop_assert_eq!(super::git(&copy.tree(), &status), place.git(&status));

        let edited = edit(&copy.tree(), &cases);
        prop_assert_eq!(copy.changes().unwrap().into_keys().collect::<BTreeSet<_>>(), edited);
        prop_assert_eq!(things(&place.root()), before);
    }
}
