//! A run whose changes touched several files: they are shown file by file, and undone in all files or in none.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::{Value, json};
use tribunal_engine::{
    ids::{FindingId, Hash, RunId},
    timestamp::Timestamp,
};
use tribunal_store::{EntryBatch, NewEntry, Store};
use tribunal_testkit::{landed_change, landing_key};
use tribunal_workflows::runs::types::EntryDraft;

use crate::common::Sandbox;

const RUN_ID: &str = "work-aaaa";
const ALL_FILES: [&str; 4] = ["docs/a.md", "new.rs", "old.sh", "src/b.rs"];

/// A path with its text before and after a change; `None` means that the file does not exist.
type FileBeforeAfter<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

const FIRST_LANDING: [FileBeforeAfter<'static>; 3] = [
    ("docs/a.md", Some("1\n2\n3\n4\n"), Some("one\n2\n3\n4\n")),
    ("new.rs", None, Some("fn new() {}\n")),
    ("old.sh", Some("#!/bin/sh\n"), None),
];
const SECOND_LANDING: [FileBeforeAfter<'static>; 2] =
    [("docs/a.md", Some("one\n2\n3\n4\n"), Some("one\n2\n3\nfour\n")), ("src/b.rs", Some("b\n"), Some("B\n"))];

/// A project with a run that landed `FIRST_LANDING` for F1 and F2, then `SECOND_LANDING` for F3.
fn sandbox_with_landings() -> Sandbox {
    let sandbox = Sandbox::new();
    let checkpoints_dir = format!(".tribunal/checkpoints/{RUN_ID}");
    for (landing_number, files) in [&FIRST_LANDING[..], &SECOND_LANDING].iter().enumerate() {
        let store_text = |store_text: Option<&str>| {
            let hash = Hash::digest_of(store_text?.as_bytes());
            sandbox.write_file(&format!("{checkpoints_dir}/texts/{hash}"), store_text?);
            Some(hash.to_string())
        };
        let mut records = Vec::new();
        for (path, old_text, new_text) in *files {
            let mut record = json!({"path": path, "before": store_text(*old_text), "after": store_text(*new_text)});
            if new_text.is_none() {
                record["mode"] = 0o750.into();
            }
            records.push(record);
            if let Some(new_text) = new_text {
                sandbox.write_file(path, new_text);
            }
        }
        let record_path =
            format!("{checkpoints_dir}/0.{}.1.json", landing_key(landing_number).as_str().replace('/', "."));
        sandbox.write_file(&record_path, &json!({"files": records}).to_string());
    }
    let events = landed_change(&[vec![FindingId(1), FindingId(2)], vec![FindingId(3)]]).into_iter().enumerate();
    let entries = events.map(|(landing_number, event)| {
        let draft = EntryDraft { id: landing_number.to_string(), event };
        NewEntry { run_id: RunId::new(RUN_ID), timestamp: Timestamp { wall_ms: 5, awake_ms: 1 }, draft }
    });
    let store = Store::open(&sandbox.path_of(".tribunal")).unwrap();
    store.append(EntryBatch { entries: entries.collect(), ..EntryBatch::default() }).unwrap();
    sandbox
}

/// Returns the files as they are on disk.
fn files_on_disk(sandbox: &Sandbox) -> BTreeMap<&'static str, String> {
    ALL_FILES.into_iter().filter_map(|path| Some((path, fs::read_to_string(sandbox.path_of(path)).ok()?))).collect()
}

/// Returns the files as they were before the run.
fn files_before() -> BTreeMap<&'static str, String> {
    [("docs/a.md", "1\n2\n3\n4\n"), ("old.sh", "#!/bin/sh\n"), ("src/b.rs", "b\n")]
        .map(|(path, text)| (path, text.to_string()))
        .into()
}

fn files_after() -> BTreeMap<&'static str, String> {
    [("docs/a.md", "one\n2\n3\nfour\n"), ("new.rs", "fn new() {}\n"), ("src/b.rs", "B\n")]
        .map(|(path, text)| (path, text.to_string()))
        .into()
}

fn parked_names(sandbox: &Sandbox) -> Vec<String> {
    let items = fs::read_dir(sandbox.path_of(&format!(".tribunal/parked/{RUN_ID}"))).into_iter().flatten().flatten();
    let mut names: Vec<String> = items.map(|dir_entry| dir_entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn each_file_is_shown_with_its_kind_of_change() {
    let sandbox = sandbox_with_landings();
    insta::assert_snapshot!(sandbox.run_tribunal(&["diff", RUN_ID]).stdout, @r"
    --- a/docs/a.md
    +++ b/docs/a.md
    @@ -1,4 +1,4 @@
    -1
    +one
     2
     3
    -4
    +four
    --- /dev/null
    +++ b/new.rs
    @@ -0,0 +1 @@
    +fn new() {}
    --- a/old.sh
    +++ /dev/null
    @@ -1 +0,0 @@
    -#!/bin/sh
    --- a/src/b.rs
    +++ b/src/b.rs
    @@ -1 +1 @@
    -b
    +B
    ");
    insta::assert_snapshot!(sandbox.run_tribunal(&["diff", RUN_ID, "--stat"]).stdout, @"
    docs/a.md: 2 lines added, 2 removed in 2 changes
    new.rs (new): 1 line added, 0 removed in 1 change
    old.sh (deleted): 0 lines added, 1 removed in 1 change
    src/b.rs: 1 line added, 1 removed in 1 change
      round-1/fix-1/fix/1 fixed F1, F2
      round-1/fix-1/fix/2 fixed F3
    ");
    let finding_diff = sandbox.run_json(&["diff", RUN_ID, "F3"]);
    let files: Vec<&Value> = finding_diff["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(files, ["docs/a.md", "src/b.rs"]);
    assert!(
        finding_diff["path"].is_null() && !finding_diff["diff"].as_str().unwrap().contains("+one"),
        "{finding_diff}"
    );
    let run_diff = sandbox.run_json(&["diff", RUN_ID]);
    let change_kinds: Vec<&Value> = run_diff["files"].as_array().unwrap().iter().map(|file| &file["what"]).collect();
    assert_eq!(change_kinds, ["changed", "made", "deleted", "changed"]);
    assert_eq!((&run_diff["lines_added"], &run_diff["lines_removed"]), (&4.into(), &4.into()));
}

#[test]
fn a_diff_of_several_files_can_be_applied_by_git() {
    let sandbox = sandbox_with_landings();
    sandbox.write_file("run.patch", &sandbox.run_tribunal(&["diff", RUN_ID]).stdout);
    let apply_output = sandbox.isolated_command("git").args(["apply", "-R", "run.patch"]).output().unwrap();
    assert!(apply_output.status.success(), "{apply_output:?}");
    assert_eq!(files_on_disk(&sandbox), files_before());
}

#[test]
fn undo_shows_its_plan_and_its_result() {
    let sandbox = sandbox_with_landings();
    let undo_preview = sandbox.run_tribunal(&["undo", RUN_ID]).stdout;
    insta::assert_snapshot!(undo_preview[undo_preview.find("2 changes").unwrap()..], @"
    2 changes to undo in 4 files (diff above)
      docs/a.md
      new.rs (deleted)
      old.sh (restored)
      src/b.rs
    F1, F2, F3 would be reopened when run work-aaaa is resumed
    nothing was changed; to undo it, run `tribunal undo work-aaaa --yes`
    ");
    assert_eq!(files_on_disk(&sandbox), files_after());
    insta::assert_snapshot!(sandbox.run_tribunal(&["undo", RUN_ID, "--yes"]).stdout, @"
    undid 2 changes in 4 files; later edits were kept
    saved the previous version as .tribunal/parked/work-aaaa/1-a.md; restore it with `cp .tribunal/parked/work-aaaa/1-a.md docs/a.md`
    saved the previous version as .tribunal/parked/work-aaaa/1-new.rs; restore it with `cp .tribunal/parked/work-aaaa/1-new.rs new.rs`
    saved the previous version as .tribunal/parked/work-aaaa/1-b.rs; restore it with `cp .tribunal/parked/work-aaaa/1-b.rs src/b.rs`
    F1, F2, F3 will be reopened when run work-aaaa is resumed
    next: tribunal resume work-aaaa
    ");
    assert_eq!(files_on_disk(&sandbox), files_before());
    let mode = fs::metadata(sandbox.path_of("old.sh")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o750, "it comes back as it was");
    assert_eq!(sandbox.temporary_leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn the_change_of_one_finding_is_undone_in_all_its_files() {
    let sandbox = sandbox_with_landings();
    let undo_document = sandbox.run_json(&["undo", &format!("{RUN_ID}.F3"), "--yes"]);
    let files: Vec<(&Value, &Value)> =
        undo_document["files"].as_array().unwrap().iter().map(|file| (&file["path"], &file["parked"])).collect();
    let parked_path = |parked_name: &str| Value::from(format!(".tribunal/parked/{RUN_ID}/{parked_name}"));
    assert_eq!(files, [(&"docs/a.md".into(), &parked_path("1-a.md")), (&"src/b.rs".into(), &parked_path("1-b.rs"))]);
    let mut expected = files_after();
    expected.insert("docs/a.md", "one\n2\n3\n4\n".into());
    expected.insert("src/b.rs", "b\n".into());
    assert_eq!(files_on_disk(&sandbox), expected);
    let joint_undo = sandbox.run_tribunal(&["undo", &format!("{RUN_ID}.F1"), "--together", "--yes"]);
    assert_eq!((joint_undo.exit_code, files_on_disk(&sandbox)), (Some(0), files_before()), "{}", joint_undo.stderr);
}

#[test]
fn if_one_file_conflicts_no_file_is_changed() {
    let sandbox = sandbox_with_landings();
    sandbox.write_file("docs/a.md", "uno\n2\n3\nfour\n");
    sandbox.write_file("new.rs", "fn new() { mine() }\n");
    sandbox.write_file("old.sh", "mine\n");
    let files_now = files_on_disk(&sandbox);
    let refused_undo = sandbox.run_tribunal(&["undo", RUN_ID, "--yes"]);
    assert_eq!((refused_undo.exit_code, files_on_disk(&sandbox)), (Some(3), files_now));
    assert_eq!(parked_names(&sandbox), Vec::<String>::new());
    insta::assert_snapshot!(refused_undo.stderr.replacen("; ", ";\n", 2), @"
    error: docs/a.md was changed later in the same place: line 1;
    new.rs was created by the run and changed later;
    old.sh was deleted by the run and exists again
      Undoing the change would lose later edits in the same place. Nothing was changed.
      1. undo it by hand; show the change with `tribunal diff work-aaaa`
      2. undo findings one by one where possible: `tribunal undo work-aaaa.FINDING`
    ");
    fs::remove_file(sandbox.path_of("src/b.rs")).unwrap();
    let missing_file_undo = sandbox.run_tribunal(&["undo", &format!("{RUN_ID}.F3"), "--yes"]);
    assert!(missing_file_undo.stderr.starts_with("error: src/b.rs does not exist\n"), "{}", missing_file_undo.stderr);
    assert_eq!(sandbox.read_file("docs/a.md"), "uno\n2\n3\nfour\n");
}

#[test]
fn later_edits_in_any_file_stay_byte_for_byte() {
    let sandbox = sandbox_with_landings();
    sandbox.write_file("docs/a.md", "one\n2\n3\nfour\nmine\r\n\tno end");
    sandbox.write_file("src/b.rs", "mine\nB\n");
    let output = sandbox.run_tribunal(&["undo", RUN_ID, "--yes"]);
    assert_eq!(output.exit_code, Some(3), "an edit beside the very line is in the way: {}", output.stderr);
    sandbox.write_file("docs/a.md", "one\nmine\r\n2\n3\nfour\n");
    sandbox.write_file("src/b.rs", "B\n");
    assert_eq!(sandbox.run_tribunal(&["undo", &format!("{RUN_ID}.F3"), "--yes"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("docs/a.md"), "one\nmine\r\n2\n3\n4\n");
}

#[test]
fn a_killed_undo_is_completed_by_the_same_command() {
    for fault_point in [
        "after:write:1-a.md",
        "after:write:1-b.rs",
        "before:write:undo.1.json",
        "after:write:undo.1.json",
        "before:write:a.md",
        "after:write:a.md",
        "before:remove:new.rs",
        "after:remove:new.rs",
        "after:write:old.sh",
        "after:write:b.rs",
        "before:write:0.round-1.fix-1.fix.1.undone",
        "after:write:0.round-1.fix-1.fix.2.undone",
    ] {
        let sandbox = sandbox_with_landings();
        let killed_output =
            sandbox.tribunal_command(&["undo", RUN_ID, "--yes"]).env("TRIBUNAL_FAULT", fault_point).output().unwrap();
        assert!(!killed_output.status.success(), "{fault_point} did not come up");
        let (old_files, new_files, files_between) = (files_before(), files_after(), files_on_disk(&sandbox));
        for path in ALL_FILES {
            let text_now = files_between.get(path);
            assert!(
                text_now == old_files.get(path) || text_now == new_files.get(path),
                "{fault_point}: {path} is {text_now:?}"
            );
        }
        let is_edited = files_between.get("docs/a.md") == old_files.get("docs/a.md");
        if is_edited {
            // The user edits a file that the undo has already restored.
            sandbox.write_file("docs/a.md", "1\n2\nmine\n3\n4\n");
        }
        let second_undo = sandbox.run_tribunal(&["undo", RUN_ID, "--yes"]);
        assert_eq!(second_undo.exit_code, Some(0), "{fault_point}: {}", second_undo.stderr);
        let mut expected = files_before();
        if is_edited {
            expected.insert("docs/a.md", "1\n2\nmine\n3\n4\n".into());
        }
        assert_eq!(files_on_disk(&sandbox), expected, "{fault_point}");
        assert!(parked_names(&sandbox).iter().any(|name| name == "1-new.rs"), "{fault_point}");
        assert_eq!(
            sandbox.run_tribunal(&["undo", RUN_ID]).stdout,
            format!("all changes of run {RUN_ID} were undone\n")
        );
        assert_eq!(sandbox.temporary_leftovers(), Vec::<PathBuf>::new(), "{fault_point}");
        assert!(!sandbox.path_of(&format!(".tribunal/checkpoints/{RUN_ID}/undo.1.json")).exists(), "{fault_point}");
    }
}

#[test]
fn a_record_that_names_a_path_outside_the_project_is_refused() {
    for path in ["../outside.md", ".git/hooks/post-commit", ".tribunal/journal.db"] {
        let sandbox = sandbox_with_landings();
        let record_path = format!(".tribunal/checkpoints/{RUN_ID}/0.round-1.fix-1.fix.1.1.json");
        let text_hash = Hash::digest_of(b"b\n");
        let record_json = json!({"files": [{"path": path, "before": text_hash.to_string(), "after": null}]});
        sandbox.write_file(&record_path, &record_json.to_string());
        let refused_undo = sandbox.run_tribunal(&["undo", RUN_ID, "--yes"]);
        assert_eq!(
            (refused_undo.exit_code, files_on_disk(&sandbox)),
            (Some(5), files_after()),
            "{}",
            refused_undo.stderr
        );
        assert!(
            refused_undo.stderr.contains(&format!("it contains {path}, which a run must not change\n")),
            "{}",
            refused_undo.stderr
        );
    }
}

#[test]
fn a_directory_that_became_a_symlink_is_not_written_through() {
    let sandbox = sandbox_with_landings();
    let outside_dir = sandbox.home_dir().with_file_name("outside");
    fs::create_dir_all(&outside_dir).unwrap();
    fs::write(outside_dir.join("b.rs"), "B\n").unwrap();
    fs::remove_dir_all(sandbox.path_of("src")).unwrap();
    std::os::unix::fs::symlink(&outside_dir, sandbox.path_of("src")).unwrap();
    let refused_undo = sandbox.run_tribunal(&["undo", RUN_ID, "--yes"]);
    assert_eq!(refused_undo.exit_code, Some(2), "{}", refused_undo.stderr);
    assert!(refused_undo.stderr.starts_with("error: src/b.rs is outside the project"), "{}", refused_undo.stderr);
    assert_eq!(fs::read_to_string(outside_dir.join("b.rs")).unwrap(), "B\n");
    fs::remove_file(outside_dir.join("b.rs")).unwrap();
    assert_eq!(sandbox.run_tribunal(&["undo", RUN_ID, "--yes"]).exit_code, Some(2));
    assert_eq!(fs::read_dir(&outside_dir).unwrap().count(), 0);
}

#[test]
fn documents_of_several_files_fit_their_schema() {
    let sandbox = sandbox_with_landings();
    for (args, name) in
        [(&["diff", RUN_ID][..], "diff"), (&["undo", RUN_ID], "undo"), (&["undo", RUN_ID, "--yes"], "undo")]
    {
        let document = sandbox.run_json(args);
        let schema = sandbox.run_json(&["schema", name]);
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&document), "{document}");
        assert_eq!(document["files"].as_array().unwrap().len(), 4, "{document}");
    }
}
