//! Tests of the dependencies between the crates: the real workspace has no forbidden one, and each forbidden one would be found.
//!
//! All but the first test work on a copy of the real manifests in a temporary directory, break one thing, and expect exactly
//! that breach: so a check that no longer works cannot stay green.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use xtask::{arch, workspace_root};

#[test]
fn the_workspace_has_no_forbidden_dependency() -> Result<()> {
    assert_eq!(find_breaches(&workspace_root())?, [""; 0]);
    Ok(())
}

#[test]
fn an_unchanged_copy_has_no_breach() -> Result<()> {
    assert_eq!(find_breaches(copy_manifests()?.path())?, [""; 0]);
    Ok(())
}

/// The dependent crate, its dependency (by directory), and the reason that is reported.
const FORBIDDEN_DEPENDENCIES: &[(&str, &str, &str)] = &[
    ("engine", "workflows", "the engine knows no kind of run, and of ours uses JSON alone"),
    ("engine", "store", "the engine knows no kind of run, and of ours uses JSON alone"),
    ("engine", "testkit", "the engine knows no kind of run, and of ours uses JSON alone"),
    ("workflows", "store", "workflows decide over the engine, and of ours use nothing else but JSON"),
    ("workflows", "agents", "workflows decide over the engine, and of ours use nothing else but JSON"),
    ("workflows", "guard", "workflows decide over the engine, and of ours use nothing else but JSON"),
    ("json", "engine", "json knows none of the types that it writes and reads"),
    ("json-derive", "json", "json-derive makes code, and runs only in the compiler"),
    ("guard", "workflows", "guard judges words, and depends on nothing of ours"),
    ("guard", "agents", "guard judges words, and depends on nothing of ours"),
    ("agents", "guard", "agents translates for workflows, starts nothing and keeps nothing"),
    ("agents", "bmad", "agents translates for workflows, starts nothing and keeps nothing"),
    ("agents", "store", "agents translates for workflows, starts nothing and keeps nothing"),
    ("agents", "supervise", "agents translates for workflows, starts nothing and keeps nothing"),
    ("bmad", "agents", "bmad turns text into types of engine and workflows and JSON, nothing else"),
    ("supervise", "workflows", "supervise knows processes, and nothing of ours"),
    ("store", "supervise", "store keeps what engine and workflows name, and knows no other crate"),
    ("report", "runner", "report sees journal events, workflows and JSON, nothing else"),
    ("report", "agents", "report sees journal events, workflows and JSON, nothing else"),
    ("report", "store", "report sees journal events, workflows and JSON, nothing else"),
    ("report", "supervise", "report sees journal events, workflows and JSON, nothing else"),
    ("runner", "report", "runner acts, and does not show"),
    ("runner", "cli", "nothing depends on the binary"),
    ("store", "cli", "nothing depends on the binary"),
    ("testkit", "runner", "testkit scripts agents for the tests of every crate, so it stays below them"),
    ("runner", "testkit", "testkit is for tests: as a dev-dependency only"),
    ("cli", "testkit", "testkit is for tests: as a dev-dependency only"),
];

#[test]
fn each_forbidden_dependency_is_found_in_every_kind_of_table() -> Result<()> {
    let tables = [
        ("dependencies", "depend"),
        ("build-dependencies", "depend"),
        ("target.'cfg(xtask-test)'.dependencies", "depend"),
        ("dev-dependencies", "dev-depend"),
        ("target.'cfg(xtask-test)'.dev-dependencies", "dev-depend"),
    ];
    for (from, to, reason) in FORBIDDEN_DEPENDENCIES {
        for (table, verb) in tables {
            if *to == "testkit" && *from != "engine" && verb == "dev-depend" {
                continue;
            }
            let (file, package) = (format!("crates/{from}/Cargo.toml"), package_name(to));
            let line = format!("{package} = {{ path = \"../{to}\" }}");
            let breach = format!("{file}: {} may not {verb} on {package} ({reason})", crate::package_name(from));
            expect_breaches(&[ManifestEdit::Line(&file, table, &line)], &[&breach])?;
        }
    }
    Ok(())
}

#[test]
fn every_crate_may_dev_depend_on_the_testkit() -> Result<()> {
    let line = "tribunal-testkit = { path = \"../testkit\" }";
    for from in ["workflows", "guard", "bmad", "agents", "supervise", "store", "report", "runner", "cli"] {
        let file = format!("crates/{from}/Cargo.toml");
        expect_breaches(&[ManifestEdit::Line(&file, "target.'cfg(xtask-test)'.dev-dependencies", line)], &[])?;
    }
    Ok(())
}

#[test]
fn a_renamed_dependency_is_recognised() -> Result<()> {
    let found = "crates/report/Cargo.toml: tribunal-report may not depend on tribunal-store \
                 (report sees journal events, workflows and JSON, nothing else)";
    let report = |line| ManifestEdit::Line("crates/report/Cargo.toml", "dependencies", line);
    let shared = |line| ManifestEdit::Line("Cargo.toml", "workspace.dependencies", line);

    expect_breaches(&[report(r#"keep = { package = "tribunal-store", version = "0.1" }"#)], &[found])?;
    expect_breaches(&[report(r#"keep = { package = "tribunal-store", path = "../store" }"#)], &[found])?;
    expect_breaches(&[report(r#"keep = { path = "../store" }"#)], &[found])?;
    expect_breaches(&[report(r#"tribunal-store = "0.1""#)], &[found])?;
    for shared_line in [
        r#"keep = { package = "tribunal-store", version = "0.1" }"#,
        r#"keep = { package = "tribunal-store", path = "crates/store" }"#,
        r#"keep = { path = "crates/store" }"#,
    ] {
        expect_breaches(&[shared(shared_line), report("keep.workspace = true")], &[found])?;
    }
    Ok(())
}

#[test]
fn workflows_stay_without_io() -> Result<()> {
    let core = |line| ManifestEdit::Line("crates/workflows/Cargo.toml", "dependencies", line);
    let shared = |line| ManifestEdit::Line("Cargo.toml", "workspace.dependencies", line);
    let lib = |text| ManifestEdit::File("crates/workflows/src/lib.rs", text);

    let tokio = "crates/workflows/Cargo.toml: tribunal-workflows may not depend on tokio (workflows cannot do i/o: \
                 from outside it uses only serde, serde_json, thiserror, futures-util, blake3)";
    expect_breaches(&[core(r#"tokio = { version = "1", default-features = false }"#)], &[tokio])?;
    expect_breaches(&[core(r#"serde_json5 = { package = "tokio", version = "1" }"#)], &[tokio])?;

    let loud = "crates/workflows/Cargo.toml: tribunal-workflows depends on serde with default features on \
                (workflows is without std: write default-features = false where its version stands)";
    expect_breaches(&[core(r#"other = { package = "serde", version = "1" }"#)], &[loud])?;
    expect_breaches(
        &[shared(r#"other = { package = "serde", version = "1" }"#), core("other.workspace = true")],
        &[loud],
    )?;
    let quiet = r#"other = { package = "serde", version = "1", default-features = false }"#;
    expect_breaches(&[core(quiet)], &[])?;
    expect_breaches(&[shared(quiet), core("other.workspace = true")], &[])?;
    expect_breaches(&[shared(quiet), core("other = { workspace = true, default-features = true }")], &[loud])?;
    expect_breaches(
        &[shared(quiet), core(r#"other = { workspace = true, features = ["std"] }"#)],
        &[
            "crates/workflows/Cargo.toml: tribunal-workflows depends on serde with feature \"std\" (workflows is without std: take it out)",
        ],
    )?;

    let missing = "crates/workflows/src/lib.rs: `#![no_std]` is missing (workflows cannot do i/o)";
    expect_breaches(&[lib("//! Says `#![no_std]`.\n")], &[missing])?;
    expect_breaches(&[lib("#![cfg_attr(not(test), no_std)]\n")], &[missing])?;
    let std = "`extern crate std` in workflows (workflows cannot do i/o, not even in its tests)";
    expect_breaches(&[lib("#![no_std]\nextern crate std;\n")], &[&format!("crates/workflows/src/lib.rs:2: {std}")])?;
    expect_breaches(
        &[ManifestEdit::File(
            "crates/workflows/src/rules/menu.rs",
            "// extern crate std\n#[cfg(test)]\nextern crate std as anything;\n",
        )],
        &[&format!("crates/workflows/src/rules/menu.rs:3: {std}")],
    )
}

#[test]
fn guard_stays_without_io_and_uses_nothing() -> Result<()> {
    let guard = |line| ManifestEdit::Line("crates/guard/Cargo.toml", "dependencies", line);
    let found = "crates/guard/Cargo.toml: tribunal-guard may not depend on serde \
                 (guard cannot do i/o: it uses nothing from outside)";
    expect_breaches(&[guard(r#"serde = { version = "1", default-features = false }"#)], &[found])?;
    let tests = ManifestEdit::Line("crates/guard/Cargo.toml", "dev-dependencies", r#"insta = "1""#);
    expect_breaches(&[tests], &[])?;
    let missing = "crates/guard/src/lib.rs: `#![no_std]` is missing (guard cannot do i/o)";
    expect_breaches(&[ManifestEdit::File("crates/guard/src/lib.rs", "//! Says `#![no_std]`.\n")], &[missing])?;
    let std = "crates/guard/src/extra.rs:1: `extern crate std` in guard (guard cannot do i/o, not even in its tests)";
    expect_breaches(&[ManifestEdit::File("crates/guard/src/extra.rs", "extern crate std;\n")], &[std])
}

#[test]
fn the_database_and_unsafe_stay_in_their_crates() -> Result<()> {
    for table in ["dependencies", "dev-dependencies"] {
        let verb = table.trim_end_matches("dependencies");
        expect_breaches(
            &[ManifestEdit::Line("crates/bmad/Cargo.toml", table, r#"rusqlite = "0.41""#)],
            &[&format!(
                "crates/bmad/Cargo.toml: tribunal-bmad may not {verb}depend on rusqlite (store opens the database, alone)"
            )],
        )?;
    }
    expect_breaches(
        &[ManifestEdit::Line(
            "crates/store/Cargo.toml",
            "dependencies",
            r#"other = { package = "rusqlite", version = "0.41" }"#,
        )],
        &[],
    )?;

    let code = "// unsafe\nmacro_rules! quiet { () => { unsafe { f() } } }\n";
    let found = "crates/store/src/extra.rs:2: `unsafe` outside of crates/supervise (supervise holds the only `unsafe`)";
    expect_breaches(&[ManifestEdit::File("crates/store/src/extra.rs", code)], &[found])?;
    expect_breaches(&[ManifestEdit::File("crates/supervise/src/extra.rs", code)], &[])
}

#[test]
fn a_crate_outside_the_table_is_found() -> Result<()> {
    let manifest = "[package]\nname = \"tribunal-extra\"\n";
    let unknown = "not in the table of crates: add it to xtask/src/arch.rs with its arrows";
    let found = format!("crates/extra/Cargo.toml: {unknown}");
    expect_breaches(&[ManifestEdit::File("crates/extra/Cargo.toml", manifest)], &[&found])?;

    let elsewhere = ManifestEdit::File("extra/Cargo.toml", manifest);
    let line = ManifestEdit::Line("crates/bmad/Cargo.toml", "dependencies", r#"extra = { path = "../../extra" }"#);
    let found = format!("crates/bmad/Cargo.toml: tribunal-bmad may not depend on tribunal-extra ({unknown})");
    expect_breaches(&[elsewhere, line], &[&found])?;

    let other_name = ManifestEdit::File("crates/bmad/Cargo.toml", manifest);
    let found = "crates/bmad/Cargo.toml: this package is called \"tribunal-extra\", \
                 in the table of xtask/src/arch.rs \"tribunal-bmad\"";
    let found = [found.to_owned()];
    let copy = copy_manifests()?;
    other_name.apply(copy.path())?;
    assert!(find_breaches(copy.path())?.starts_with(&found));
    Ok(())
}

#[test]
fn a_source_that_is_not_rust_is_a_breach() -> Result<()> {
    let found = "crates/bmad/src/extra.rs:1: this is not rust: expected `!`";
    expect_breaches(&[ManifestEdit::File("crates/bmad/src/extra.rs", "what is this\n")], &[found])
}

/// One change that breaks something in the copy.
enum ManifestEdit<'a> {
    /// Adds a line to a table of a file: file, table, line.
    Line(&'a str, &'a str, &'a str),
    /// Writes a file with this text.
    File(&'a str, &'a str),
}

impl ManifestEdit<'_> {
    fn apply(&self, root: &Path) -> Result<()> {
        match self {
            Self::File(path, text) => write_file(&root.join(path), text),
            Self::Line(path, table, line) => {
                let path = root.join(path);
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let heading = format!("[{table}]");
                let mut lines: Vec<&str> = text.lines().collect();
                let heading_index = lines.iter().position(|line| line.starts_with(&heading)).unwrap_or_else(|| {
                    lines.push(&heading);
                    lines.len() - 1
                });
                lines.insert(heading_index + 1, line);
                write_file(&path, &lines.join("\n"))
            }
        }
    }
}

fn expect_breaches(edits: &[ManifestEdit], expected: &[&str]) -> Result<()> {
    let copy = copy_manifests()?;
    for edit in edits {
        edit.apply(copy.path())?;
    }
    assert_eq!(find_breaches(copy.path())?, expected);
    Ok(())
}

fn find_breaches(root: &Path) -> Result<Vec<String>> {
    Ok(arch::check_architecture(root)?.iter().map(ToString::to_string).collect())
}

fn package_name(folder: &str) -> String {
    if folder == "cli" { "tribunal".to_owned() } else { format!("tribunal-{folder}") }
}

/// Copies the real manifests into a temporary directory, with stubs for the libraries that are without std.
fn copy_manifests() -> Result<TempDir> {
    let (source_root, target_dir) = (workspace_root(), tempfile::tempdir()?);
    write_file(&target_dir.path().join("Cargo.toml"), &fs::read_to_string(source_root.join("Cargo.toml"))?)?;
    for entry in fs::read_dir(source_root.join("crates"))? {
        let entry = entry?;
        if let Ok(manifest) = fs::read_to_string(entry.path().join("Cargo.toml")) {
            write_file(&target_dir.path().join("crates").join(entry.file_name()).join("Cargo.toml"), &manifest)?;
        }
    }
    for pure in ["engine", "workflows", "json", "guard"] {
        write_file(&target_dir.path().join("crates").join(pure).join("src/lib.rs"), "//! A stub.\n#![no_std]\n")?;
    }
    Ok(target_dir)
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file without a folder")?)?;
    fs::write(path, text).with_context(|| path.display().to_string())
}
