//! A run whose changes touched several files: they are shown file by file, and undone in all files or in none.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::{Value, json};
use tribunal_core::{
    event::Draft,
    ids::{FindingId, Hash, RunId},
    stamp::Stamp,
};
use tribunal_store::{Batch, NewEntry, Store};
use tribunal_testkit::{landed_change, lander};

use crate::common::Sandbox;

const RUN: &str = "work-aaaa";
const ALL: [&str; 4] = ["docs/a.md", "new.rs", "old.sh", "src/b.rs"];

/// A path with its text before and after a change; `None` means that the file does not exist.
type Around<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

const FIRST: [Around<'static>; 3] = [
    ("docs/a.md", Some("1\n2\n3\n4\n"), Some("one\n2\n3\n4\n")),
    ("new.rs", None, Some("fn new() {}\n")),
    ("old.sh", Some("#!/bin/sh\n"), None),
];
const SECOND: [Around<'static>; 2] = [
    ("docs/a.md", Some("one\n2\n3\n4\n"), Some("one\n2\n3\nfour\n")),
    ("src/b.rs", Some("b\n"), Some("B\n")),
];

/// A project with a run that landed `FIRST_LANDING` for F1 and F2, then `SECOND_LANDING` for F3.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let kept = format!(".tribunal/checkpoints/{RUN}");
    for (number, files) in [&FIRST[..], &SECOND].iter().enumerate() {
        let text = |text: Option<&str>| {
            let hash = Hash::of(text?.as_bytes());
            sandbox.write(&format!("{kept}/texts/{hash}"), text?);
            Some(hash.to_string())
        };
        let mut records = Vec::new();
        for (path, before, after) in *files {
            let mut record = json!({"path": path, "before": text(*before), "after": text(*after)});
            if after.is_none() {
                record["mode"] = 0o750.into();
            }
            records.push(record);
            if let Some(after) = after {
                sandbox.write(path, after);
            }
        }
        let name = format!("{kept}/0.{}.1.json", lander(number).as_str().replace('/', "."));
        sandbox.write(&name, &json!({"files": records}).to_string());
    }
    let events =
        landed_change(&[vec![FindingId(1), FindingId(2)], vec![FindingId(3)]]).into_iter().enumerate();
    let entries = events.map(|(number, event)| {
        let draft = Draft { id: number.to_string(), event };
        NewEntry { run: RunId::new(RUN), at: Stamp { wall_ms: 5, awake_ms: 1 }, draft }
    });
    let store = Store::open(&sandbox.path(".tribunal")).unwrap();
    store.append(Batch { entries: entries.collect(), ..Batch::default() }).unwrap();
    sandbox
}

/// Returns the files as they are on disk.
fn tree(sandbox: &Sandbox) -> BTreeMap<&'static str, String> {
    ALL.into_iter().filter_map(|path| Some((path, fs::read_to_string(sandbox.path(path)).ok()?))).collect()
}

/// Returns the files as they were before the run.
fn before() -> BTreeMap<&'static str, String> {
    [("docs/a.md", "1\n2\n3\n4\n"), ("old.sh", "#!/bin/sh\n"), ("src/b.rs", "b\n")]
        .map(|(path, text)| (path, text.to_string()))
        .into()
}

fn after() -> BTreeMap<&'static str, String> {
    [("docs/a.md", "one\n2\n3\nfour\n"), ("new.rs", "fn new() {}\n"), ("src/b.rs", "B\n")]
        .map(|(path, text)| (path, text.to_string()))
        .into()
}

fn parked(sandbox: &Sandbox) -> Vec<String> {
    let items =
        fs::read_dir(sandbox.path(&format!(".tribunal/parked/{RUN}"))).into_iter().flatten().flatten();
    let mut names: Vec<String> = items.map(|item| item.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn each_file_is_shown_with_what_became_of_it() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.run(&["diff", RUN]).out, @r"
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
    insta::assert_snapshot!(sandbox.run(&["diff", RUN, "--stat"]).out, @r"
    docs/a.md: 2 lines added, 2 removed, by 2 changes
    new.rs (made): 1 line added, 0 removed, by 1 change
    old.sh (deleted): 0 lines added, 1 removed, by 1 change
    src/b.rs: 1 line added, 1 removed, by 1 change
      round-1/fix-1/fix/1 repaired F1, F2
      round-1/fix-1/fix/2 repaired F3
    ");
    let only = sandbox.json(&["diff", RUN, "F3"]);
    let files: Vec<&Value> = only["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(files, ["docs/a.md", "src/b.rs"]);
    assert!(only["path"].is_null() && !only["diff"].as_str().unwrap().contains("+one"), "{only}");
    let all = sandbox.json(&["diff", RUN]);
    let what: Vec<&Value> = all["files"].as_array().unwrap().iter().map(|file| &file["what"]).collect();
    assert_eq!(what, ["changed", "made", "deleted", "changed"]);
    assert_eq!((&all["lines_added"], &all["lines_removed"]), (&4.into(), &4.into()));
}

#[test]
fn a_diff_of_several_files_can_be_given_to_patch() {
    let sandbox = sandbox();
    sandbox.write("run.patch", &sandbox.run(&["diff", RUN]).out);
    let applied = sandbox.wrapped("git").args(["apply", "-R", "run.patch"]).output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
    assert_eq!(tree(&sandbox), before());
}

#[test]
fn people_read_what_would_be_done_and_what_was() {
    let sandbox = sandbox();
    let preview = sandbox.run(&["undo", RUN]).out;
    insta::assert_snapshot!(preview[preview.find("2 changes").unwrap()..], @r"
    2 changes to take back; this is what would be done to 4 files
      docs/a.md
      new.rs (goes)
      old.sh (comes back)
      src/b.rs
    F1, F2, F3 would be open again when run work-aaaa goes on
    nothing was changed; to do it: tribunal undo work-aaaa --yes
    ");
    assert_eq!(tree(&sandbox), after());
    insta::assert_snapshot!(sandbox.run(&["undo", RUN, "--yes"]).out, @r"
    took back 2 changes in 4 files; what else was changed since is as it was
    parked what stood there: .tribunal/parked/work-aaaa/1-a.md; to have it again: cp .tribunal/parked/work-aaaa/1-a.md docs/a.md
    parked what stood there: .tribunal/parked/work-aaaa/1-new.rs; to have it again: cp .tribunal/parked/work-aaaa/1-new.rs new.rs
    parked what stood there: .tribunal/parked/work-aaaa/1-b.rs; to have it again: cp .tribunal/parked/work-aaaa/1-b.rs src/b.rs
    F1, F2, F3 will be open again when run work-aaaa goes on
    next: tribunal resume work-aaaa
    ");
    assert_eq!(tree(&sandbox), before());
    let mode = fs::metadata(sandbox.path("old.sh")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o750, "it comes back as it was");
    assert_eq!(sandbox.litter(), Vec::<PathBuf>::new());
}

#[test]
fn one_finding_s_change_goes_from_all_its_files_and_the_other_stays() {
    let sandbox = sandbox();
    let done = sandbox.json(&["undo", &format!("{RUN}.F3"), "--yes"]);
    let files: Vec<(&Value, &Value)> =
        done["files"].as_array().unwrap().iter().map(|file| (&file["path"], &file["parked"])).collect();
    let at = |name: &str| Value::from(format!(".tribunal/parked/{RUN}/{name}"));
    assert_eq!(files, [(&"docs/a.md".into(), &at("1-a.md")), (&"src/b.rs".into(), &at("1-b.rs"))]);
    let mut expected = after();
    expected.insert("docs/a.md", "one\n2\n3\n4\n".into());
    expected.insert("src/b.rs", "b\n".into());
    assert_eq!(tree(&sandbox), expected);
    let together = sandbox.run(&["undo", &format!("{RUN}.F1"), "--together", "--yes"]);
    assert_eq!((together.code, tree(&sandbox)), (Some(0), before()), "{}", together.err);
}

#[test]
fn where_one_file_is_in_the_way_none_is_changed() {
    let sandbox = sandbox();
    sandbox.write("docs/a.md", "uno\n2\n3\nfour\n");
    sandbox.write("new.rs", "fn new() { mine() }\n");
    sandbox.write("old.sh", "mine\n");
    let now = tree(&sandbox);
    let refused = sandbox.run(&["undo", RUN, "--yes"]);
    assert_eq!((refused.code, tree(&sandbox)), (Some(3), now));
    assert_eq!(parked(&sandbox), Vec::<String>::new());
    insta::assert_snapshot!(refused.err.replacen("; ", ";\n", 2), @r"
    [!] docs/a.md was changed in the same place since: line 1;
    new.rs was made by the run and changed since;
    old.sh was deleted by the run and is there again
        Taking the change back would lose what was written there since. Nothing was changed.
        1. take it back by hand; what it was: tribunal diff work-aaaa
        2. take back what can be, one by one: tribunal undo work-aaaa.FINDING
    ");
    fs::remove_file(sandbox.path("src/b.rs")).unwrap();
    let gone = sandbox.run(&["undo", &format!("{RUN}.F3"), "--yes"]);
    assert!(gone.err.starts_with("[!] src/b.rs does not exist\n"), "{}", gone.err);
    assert_eq!(sandbox.read("docs/a.md"), "uno\n2\n3\nfour\n");
}

#[test]
fn later_edits_in_any_file_stay_byte_for_byte() {
    let sandbox = sandbox();
    sandbox.write("docs/a.md", "one\n2\n3\nfour\nmine\r\n\tno end");
    sandbox.write("src/b.rs", "mine\nB\n");
    let ran = sandbox.run(&["undo", RUN, "--yes"]);
    assert_eq!(ran.code, Some(3), "an edit beside the very line is in the way: {}", ran.err);
    sandbox.write("docs/a.md", "one\nmine\r\n2\n3\nfour\n");
    sandbox.write("src/b.rs", "B\n");
    assert_eq!(sandbox.run(&["undo", &format!("{RUN}.F3"), "--yes"]).code, Some(0));
    assert_eq!(sandbox.read("docs/a.md"), "one\nmine\r\n2\n3\n4\n");
}

#[test]
fn killed_on_the_way_the_same_command_does_the_rest() {
    for fault in [
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
        let sandbox = sandbox();
        let killed = sandbox.command(&["undo", RUN, "--yes"]).env("TRIBUNAL_FAULT", fault).output().unwrap();
        assert!(!killed.status.success(), "{fault} did not come up");
        let (old, new, between) = (before(), after(), tree(&sandbox));
        for path in ALL {
            let now = between.get(path);
            assert!(now == old.get(path) || now == new.get(path), "{fault}: {path} is {now:?}");
        }
        let edited = between.get("docs/a.md") == old.get("docs/a.md");
        if edited {
            // The user edits a file that the undo has already restored.
            sandbox.write("docs/a.md", "1\n2\nmine\n3\n4\n");
        }
        let rest = sandbox.run(&["undo", RUN, "--yes"]);
        assert_eq!(rest.code, Some(0), "{fault}: {}", rest.err);
        let mut expected = before();
        if edited {
            expected.insert("docs/a.md", "1\n2\nmine\n3\n4\n".into());
        }
        assert_eq!(tree(&sandbox), expected, "{fault}");
        assert!(parked(&sandbox).iter().any(|name| name == "1-new.rs"), "{fault}");
        assert_eq!(
            sandbox.run(&["undo", RUN]).out,
            format!("all that run {RUN} had landed was taken back\n")
        );
        assert_eq!(sandbox.litter(), Vec::<PathBuf>::new(), "{fault}");
        assert!(!sandbox.path(&format!(".tribunal/checkpoints/{RUN}/undo.1.json")).exists(), "{fault}");
    }
}

#[test]
fn a_record_that_names_what_is_not_the_project_s_is_refused() {
    for path in ["../outside.md", ".git/hooks/post-commit", ".tribunal/journal.db"] {
        let sandbox = sandbox();
        let record = format!(".tribunal/checkpoints/{RUN}/0.round-1.fix-1.fix.1.1.json");
        let text = Hash::of(b"b\n");
        let files = json!({"files": [{"path": path, "before": text.to_string(), "after": null}]});
        sandbox.write(&record, &files.to_string());
        let refused = sandbox.run(&["undo", RUN, "--yes"]);
        assert_eq!((refused.code, tree(&sandbox)), (Some(5), after()), "{}", refused.err);
        assert!(refused.err.contains(&format!("cannot be used: it is one of {path}\n")), "{}", refused.err);
    }
}

#[test]
fn a_folder_that_became_a_link_out_of_the_project_is_not_written_through() {
    let sandbox = sandbox();
    let outside = sandbox.home().with_file_name("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("b.rs"), "B\n").unwrap();
    fs::remove_dir_all(sandbox.path("src")).unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.path("src")).unwrap();
    let refused = sandbox.run(&["undo", RUN, "--yes"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.starts_with("[!] src/b.rs is outside the project"), "{}", refused.err);
    assert_eq!(fs::read_to_string(outside.join("b.rs")).unwrap(), "B\n");
    fs::remove_file(outside.join("b.rs")).unwrap();
    assert_eq!(sandbox.run(&["undo", RUN, "--yes"]).code, Some(2));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn documents_of_several_files_fit_their_schema() {
    let sandbox = sandbox();
    for (args, name) in
        [(&["diff", RUN][..], "diff"), (&["undo", RUN], "undo"), (&["undo", RUN, "--yes"], "undo")]
    {
        let document = sandbox.json(args);
        let schema = sandbox.json(&["schema", name]);
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&document), "{document}");
        assert_eq!(document["files"].as_array().unwrap().len(), 4, "{document}");
    }
}
