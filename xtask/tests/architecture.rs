//! Tests of the dependencies between the crates: the real workspace has no forbidden one, and each forbidden one would be found.
//!
//! All but the first test work on a copy of the real manifests in a temporary directory, break one thing, and expect exactly
//! that breach: so a check that no longer works cannot stay green.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use xtask::{arch, root};

#[test]
fn the_workspace_keeps_its_arrows() -> Result<()> {
    assert_eq!(breaches(&root())?, [""; 0]);
    Ok(())
}

#[test]
fn an_untouched_copy_has_no_breach() -> Result<()> {
    assert_eq!(breaches(copy()?.path())?, [""; 0]);
    Ok(())
}

/// The dependent crate, its dependency (by directory), and the reason that is reported.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("core", "store", "core decides, and depends on nothing of ours"),
    ("core", "agents", "core decides, and depends on nothing of ours"),
    ("core", "guard", "core decides, and depends on nothing of ours"),
    ("guard", "core", "guard judges words, and depends on nothing of ours"),
    ("guard", "agents", "guard judges words, and depends on nothing of ours"),
    ("agents", "guard", "agents translates for core, starts nothing and keeps nothing"),
    ("agents", "bmad", "agents translates for core, starts nothing and keeps nothing"),
    ("agents", "store", "agents translates for core, starts nothing and keeps nothing"),
    ("agents", "supervise", "agents translates for core, starts nothing and keeps nothing"),
    ("bmad", "agents", "bmad turns text into core's types and back, nothing else"),
    ("supervise", "core", "supervise knows processes, and nothing of ours"),
    ("store", "supervise", "store keeps what core names, and knows nobody else"),
    ("report", "runner", "report sees journal events and core, nothing else"),
    ("report", "agents", "report sees journal events and core, nothing else"),
    ("report", "store", "report sees journal events and core, nothing else"),
    ("report", "supervise", "report sees journal events and core, nothing else"),
    ("runner", "report", "runner acts, and does not show"),
    ("runner", "cli", "nothing depends on the binary"),
    ("store", "cli", "nothing depends on the binary"),
    ("testkit", "runner", "testkit scripts agents for the tests of every crate, so it stays below them"),
    ("runner", "testkit", "testkit is for tests: as a dev-dependency only"),
    ("cli", "testkit", "testkit is for tests: as a dev-dependency only"),
];

#[test]
fn each_forbidden_arrow_is_found_in_every_kind_of_table() -> Result<()> {
    let tables = [
        ("dependencies", "depend"),
        ("build-dependencies", "depend"),
        ("target.'cfg(xtask-test)'.dependencies", "depend"),
        ("dev-dependencies", "dev-depend"),
        ("target.'cfg(xtask-test)'.dev-dependencies", "dev-depend"),
    ];
    for (from, to, reason) in FORBIDDEN {
        for (table, verb) in tables {
            if *to == "testkit" && verb == "dev-depend" {
                continue;
            }
            let (file, package) = (format!("crates/{from}/Cargo.toml"), package(to));
            let line = format!("{package} = {{ path = \"../{to}\" }}");
            let breach = format!("{file}: {} may not {verb} on {package} ({reason})", crate::package(from));
            expect(&[Edit::Line(&file, table, &line)], &[&breach])?;
        }
    }
    Ok(())
}

#[test]
fn every_crate_may_dev_depend_on_the_testkit() -> Result<()> {
    let line = "tribunal-testkit = { path = \"../testkit\" }";
    for from in ["core", "guard", "bmad", "agents", "supervise", "store", "report", "runner", "cli"] {
        let file = format!("crates/{from}/Cargo.toml");
        expect(&[Edit::Line(&file, "target.'cfg(xtask-test)'.dev-dependencies", line)], &[])?;
    }
    Ok(())
}

#[test]
fn a_dependency_by_another_name_is_seen_through() -> Result<()> {
    let found = "crates/report/Cargo.toml: tribunal-report may not depend on tribunal-store \
                 (report sees journal events and core, nothing else)";
    let report = |line| Edit::Line("crates/report/Cargo.toml", "dependencies", line);
    let shared = |line| Edit::Line("Cargo.toml", "workspace.dependencies", line);

    expect(&[report(r#"keep = { package = "tribunal-store", version = "0.1" }"#)], &[found])?;
    expect(&[report(r#"keep = { package = "tribunal-store", path = "../store" }"#)], &[found])?;
    expect(&[report(r#"keep = { path = "../store" }"#)], &[found])?;
    expect(&[report(r#"tribunal-store = "0.1""#)], &[found])?;
    for shared_line in [
        r#"keep = { package = "tribunal-store", version = "0.1" }"#,
        r#"keep = { package = "tribunal-store", path = "crates/store" }"#,
        r#"keep = { path = "crates/store" }"#,
    ] {
        expect(&[shared(shared_line), report("keep.workspace = true")], &[found])?;
    }
    Ok(())
}

#[test]
fn core_stays_without_io() -> Result<()> {
    let core = |line| Edit::Line("crates/core/Cargo.toml", "dependencies", line);
    let shared = |line| Edit::Line("Cargo.toml", "workspace.dependencies", line);
    let lib = |text| Edit::File("crates/core/src/lib.rs", text);

    let tokio = "crates/core/Cargo.toml: tribunal-core may not depend on tokio (core cannot do i/o: \
                 from outside it uses only serde, serde_json, schemars, thiserror, futures-util, blake3)";
    expect(&[core(r#"tokio = { version = "1", default-features = false }"#)], &[tokio])?;
    expect(&[core(r#"serde_json5 = { package = "tokio", version = "1" }"#)], &[tokio])?;

    let loud = "crates/core/Cargo.toml: tribunal-core depends on serde with default features on \
                (core is without std: write default-features = false where its version stands)";
    expect(&[core(r#"other = { package = "serde", version = "1" }"#)], &[loud])?;
    expect(
        &[shared(r#"other = { package = "serde", version = "1" }"#), core("other.workspace = true")],
        &[loud],
    )?;
    let quiet = r#"other = { package = "serde", version = "1", default-features = false }"#;
    expect(&[core(quiet)], &[])?;
    expect(&[shared(quiet), core("other.workspace = true")], &[])?;
    expect(&[shared(quiet), core("other = { workspace = true, default-features = true }")], &[loud])?;
    expect(
        &[shared(quiet), core(r#"other = { workspace = true, features = ["std"] }"#)],
        &[
            "crates/core/Cargo.toml: tribunal-core depends on serde with feature \"std\" (core is without std: take it out)",
        ],
    )?;

    let missing = "crates/core/src/lib.rs: `#![no_std]` is missing (core cannot do i/o)";
    expect(&[lib("//! Says `#![no_std]`.\n")], &[missing])?;
    expect(&[lib("#![cfg_attr(not(test), no_std)]\n")], &[missing])?;
    let std = "`extern crate std` in core (core cannot do i/o, not even in its tests)";
    expect(&[lib("#![no_std]\nextern crate std;\n")], &[&format!("crates/core/src/lib.rs:2: {std}")])?;
    expect(
        &[Edit::File(
            "crates/core/src/rules/menu.rs",
            "// extern crate std\n#[cfg(test)]\nextern crate std as anything;\n",
        )],
        &[&format!("crates/core/src/rules/menu.rs:3: {std}")],
    )
}

#[test]
fn guard_stays_without_io_and_uses_nothing() -> Result<()> {
    let guard = |line| Edit::Line("crates/guard/Cargo.toml", "dependencies", line);
    let found = "crates/guard/Cargo.toml: tribunal-guard may not depend on serde \
                 (guard cannot do i/o: it uses nothing from outside)";
    expect(&[guard(r#"serde = { version = "1", default-features = false }"#)], &[found])?;
    let tests = Edit::Line("crates/guard/Cargo.toml", "dev-dependencies", r#"insta = "1""#);
    expect(&[tests], &[])?;
    let missing = "crates/guard/src/lib.rs: `#![no_std]` is missing (guard cannot do i/o)";
    expect(&[Edit::File("crates/guard/src/lib.rs", "//! Says `#![no_std]`.\n")], &[missing])?;
    let std = "crates/guard/src/extra.rs:1: `extern crate std` in guard (guard cannot do i/o, not even in its tests)";
    expect(&[Edit::File("crates/guard/src/extra.rs", "extern crate std;\n")], &[std])
}

#[test]
fn what_belongs_to_one_crate_stays_there() -> Result<()> {
    for table in ["dependencies", "dev-dependencies"] {
        let verb = table.trim_end_matches("dependencies");
        expect(
            &[Edit::Line("crates/bmad/Cargo.toml", table, r#"rusqlite = "0.41""#)],
            &[&format!(
                "crates/bmad/Cargo.toml: tribunal-bmad may not {verb}depend on rusqlite (store opens the database, alone)"
            )],
        )?;
    }
    expect(
        &[Edit::Line(
            "crates/store/Cargo.toml",
            "dependencies",
            r#"other = { package = "rusqlite", version = "0.41" }"#,
        )],
        &[],
    )?;

    let code = "// unsafe\nmacro_rules! quiet { () => { unsafe { f() } } }\n";
    let found = "crates/store/src/extra.rs:2: `unsafe` outside of crates/supervise (supervise holds the only `unsafe`)";
    expect(&[Edit::File("crates/store/src/extra.rs", code)], &[found])?;
    expect(&[Edit::File("crates/supervise/src/extra.rs", code)], &[])
}

#[test]
fn a_crate_outside_the_table_is_found() -> Result<()> {
    let manifest = "[package]\nname = \"tribunal-extra\"\n";
    let unknown = "not in the table of crates: add it to xtask/src/arch.rs with its arrows";
    let found = format!("crates/extra/Cargo.toml: {unknown}");
    expect(&[Edit::File("crates/extra/Cargo.toml", manifest)], &[&found])?;

    let elsewhere = Edit::File("extra/Cargo.toml", manifest);
    let line = Edit::Line("crates/bmad/Cargo.toml", "dependencies", r#"extra = { path = "../../extra" }"#);
    let found = format!("crates/bmad/Cargo.toml: tribunal-bmad may not depend on tribunal-extra ({unknown})");
    expect(&[elsewhere, line], &[&found])?;

    let other_name = Edit::File("crates/bmad/Cargo.toml", manifest);
    let found = "crates/bmad/Cargo.toml: this package is called \"tribunal-extra\", \
                 in the table of xtask/src/arch.rs \"tribunal-bmad\"";
    let found = [found.to_owned()];
    let copy = copy()?;
    other_name.apply(copy.path())?;
    assert!(breaches(copy.path())?.starts_with(&found));
    Ok(())
}

#[test]
fn a_source_that_is_not_rust_is_a_breach() -> Result<()> {
    let found = "crates/bmad/src/extra.rs:1: this is not rust: expected `!`";
    expect(&[Edit::File("crates/bmad/src/extra.rs", "what is this\n")], &[found])
}

/// One change that breaks something in the copy.
enum Edit<'a> {
    /// Adds a line to a table of a file: file, table, line.
    Line(&'a str, &'a str, &'a str),
    /// Writes a file with this text.
    File(&'a str, &'a str),
}

impl Edit<'_> {
    fn apply(&self, root: &Path) -> Result<()> {
        match self {
            Self::File(path, text) => write(&root.join(path), text),
            Self::Line(path, table, line) => {
                let path = root.join(path);
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let heading = format!("[{table}]");
                let mut lines: Vec<&str> = text.lines().collect();
                let at = lines.iter().position(|line| line.starts_with(&heading)).unwrap_or_else(|| {
                    lines.push(&heading);
                    lines.len() - 1
                });
                lines.insert(at + 1, line);
                write(&path, &lines.join("\n"))
            }
        }
    }
}

fn expect(edits: &[Edit], found: &[&str]) -> Result<()> {
    let copy = copy()?;
    for edit in edits {
        edit.apply(copy.path())?;
    }
    assert_eq!(breaches(copy.path())?, found);
    Ok(())
}

fn breaches(root: &Path) -> Result<Vec<String>> {
    Ok(arch::check(root)?.iter().map(ToString::to_string).collect())
}

fn package(folder: &str) -> String {
    if folder == "cli" { "tribunal".to_owned() } else { format!("tribunal-{folder}") }
}

/// Copies the real manifests into a temporary directory, with stubs for the libraries that are without std.
fn copy() -> Result<TempDir> {
    let (from, to) = (root(), tempfile::tempdir()?);
    write(&to.path().join("Cargo.toml"), &fs::read_to_string(from.join("Cargo.toml"))?)?;
    for entry in fs::read_dir(from.join("crates"))? {
        let entry = entry?;
        if let Ok(manifest) = fs::read_to_string(entry.path().join("Cargo.toml")) {
            write(&to.path().join("crates").join(entry.file_name()).join("Cargo.toml"), &manifest)?;
        }
    }
    for pure in ["core", "guard"] {
        write(&to.path().join("crates").join(pure).join("src/lib.rs"), "//! A stub.\n#![no_std]\n")?;
    }
    Ok(to)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file without a folder")?)?;
    fs::write(path, text).with_context(|| path.display().to_string())
}
