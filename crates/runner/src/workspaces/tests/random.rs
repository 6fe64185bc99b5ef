//! Random trees in random states: a workspace is the work tree without ignored files, and its changes are exactly the edits.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum FileState {
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
enum AgentEdit {
    Nothing,
    Change,
    Append,
    Remove,
    Replace,
    Touch,
}

#[derive(Clone, Debug)]
struct RandomFile {
    relative_path: String,
    content: String,
    executable: bool,
    git_state: FileState,
    agent_edit: AgentEdit,
}

fn random_path_part() -> impl Strategy<Value = String> {
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

fn random_content() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("one\r\ntwo\r\n".to_string()), "[a-z \n\u{0}é]{0,40}"]
}

fn random_file() -> impl Strategy<Value = RandomFile> {
    use FileState::*;
    let state =
        prop::sample::select(vec![Committed, Staged, Edited, StagedAndEdited, Untracked, Ignored, Removed, Deleted]);
    let edit = prop::sample::select(vec![
        AgentEdit::Nothing,
        AgentEdit::Change,
        AgentEdit::Append,
        AgentEdit::Remove,
        AgentEdit::Replace,
        AgentEdit::Touch,
    ]);
    let path = prop::collection::vec(random_path_part(), 1..4).prop_map(|parts| parts.join("/"));
    (path, random_content(), any::<bool>(), state, edit).prop_map(|(path, text, executable, state, edit)| RandomFile {
        relative_path: path,
        content: text,
        executable,
        git_state: state,
        agent_edit: edit,
    })
}

/// Files whose names do not conflict: none is a directory of another.
fn random_files() -> impl Strategy<Value = Vec<RandomFile>> {
    prop::collection::vec(random_file(), 1..16).prop_map(|cases| {
        let mut taken_paths: BTreeSet<String> = BTreeSet::new();
        let with_unique_path = |(file_index, mut random_file): (usize, RandomFile)| {
            // Directories get another ending than files.
            random_file.relative_path = random_file.relative_path.replace('/', ".d/");
            random_file.relative_path = match random_file.git_state {
                FileState::Ignored => format!("{}{file_index}.log", random_file.relative_path),
                _ => random_file.relative_path,
            };
            taken_paths.insert(random_file.relative_path.clone()).then_some(random_file)
        };
        cases.into_iter().enumerate().filter_map(with_unique_path).collect()
    })
}

/// Creates a repository with these files in their states.
fn arrange_repository(test_project: &TestProject, random_files: &[RandomFile]) {
    let write_case = |random_file: &RandomFile, text: &str| {
        let file_path = test_project.project_root().join(&random_file.relative_path);
        write_file(&file_path, text);
        if random_file.executable {
            make_executable(&file_path);
        }
    };
    test_project.write_files(&[(".gitignore", "*.log\n"), ("subject.md", "subject\n")]);
    test_project.run_git(&["init", "-q"]);
    for random_file in random_files {
        match random_file.git_state {
            FileState::Committed => write_case(random_file, &random_file.content),
            FileState::Untracked | FileState::Ignored => {}
            _ => write_case(random_file, &format!("{}before", random_file.content)),
        }
    }
    test_project.commit_all();
    for random_file in random_files {
        match random_file.git_state {
            FileState::Staged => write_case(random_file, &random_file.content),
            FileState::StagedAndEdited => write_case(random_file, "staged"),
            FileState::Removed => {
                fs::remove_file(test_project.project_root().join(&random_file.relative_path)).unwrap()
            }
            _ => {}
        }
    }
    test_project.run_git(&["add", "-A"]);
    for random_file in random_files {
        match random_file.git_state {
            FileState::Edited | FileState::StagedAndEdited | FileState::Untracked | FileState::Ignored => {
                write_case(random_file, &random_file.content)
            }
            FileState::Deleted => {
                fs::remove_file(test_project.project_root().join(&random_file.relative_path)).unwrap()
            }
            FileState::Committed | FileState::Staged | FileState::Removed => {}
        }
    }
}

/// Edits the tree as an agent would and returns the paths that differ now.
fn apply_agent_edits(tree_dir: &Path, random_files: &[RandomFile]) -> BTreeSet<String> {
    let mut edited = BTreeSet::new();
    for random_file in random_files {
        let file_path = tree_dir.join(&random_file.relative_path);
        let Ok(bytes) = fs::read(&file_path) else { continue };
        let changed = match random_file.agent_edit {
            AgentEdit::Nothing => false,
            AgentEdit::Touch => {
                fs::write(&file_path, &bytes).unwrap();
                false
            }
            // The same length, unless the file is empty.
            AgentEdit::Change => {
                let flipped_bytes: Vec<u8> = bytes.iter().map(|byte| byte ^ 1).collect();
                fs::write(&file_path, flipped_bytes).unwrap();
                !bytes.is_empty()
            }
            AgentEdit::Append => {
                fs::write(&file_path, [&bytes[..], b"!"].concat()).unwrap();
                true
            }
            AgentEdit::Remove => {
                fs::remove_file(&file_path).unwrap();
                true
            }
            AgentEdit::Replace => {
                fs::remove_file(&file_path).unwrap();
                fs::write(&file_path, "something else altogether").unwrap();
                true
            }
        };
        if changed {
            edited.insert(random_file.relative_path.clone());
        }
    }
    edited
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_copy_is_the_work_tree_and_its_changes_are_what_was_done(cases in random_files()) {
        let place = TestProject::without_git(&[]);
        arrange_repository(&place, &cases);
        let (git, before) = (read_all_bytes(&place.project_root().join(".git")), tree_items(&place.project_root()));
        let (copy, made) = place.create_workspace(&["subject.md"]);
        let mut expected = before.clone();
        expected.retain(|path, _| !path.ends_with(".log"));
        prop_assert_eq!(tree_items(&copy.tree_dir()), expected);
        prop_assert_eq!(made.remarks, [""; 0]);
        prop_assert_eq!(copy.changed_files().unwrap(), BTreeMap::new());
        prop_assert_eq!(read_all_bytes(&place.project_root().join(".git")), git);
        let status = ["status", "--porcelain", "-z", "-uall"];
        prop_assert_eq!(super::run_git(&copy.tree_dir(), &status), place.run_git(&status));

        let edited = apply_agent_edits(&copy.tree_dir(), &cases);
        prop_assert_eq!(copy.changed_files().unwrap().into_keys().collect::<BTreeSet<_>>(), edited);
        prop_assert_eq!(tree_items(&place.project_root()), before);
    }
}
