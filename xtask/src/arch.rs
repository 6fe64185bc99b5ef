//! Checks which crate may depend on which: one table of allowed dependencies, compared with the manifests.
//!
//! The purposes of that table are checked here, too: core and guard stay without I/O, `unsafe` stays in supervise, and the
//! database stays in store. Modules inside a crate are not checked: only a crate boundary holds. Sizes and texts are in
//! [`crate::tidy`].

mod manifest;

use std::path::Path;

use anyhow::Result;

use crate::tree::Tree;
use crate::{Breach, tokens};
use manifest::{Dependency, Kind, Manifest};

/// One crate, the crates it may depend on (by directory), and the reason why no others.
struct Rule {
    folder: &'static str,
    package: &'static str,
    may_see: &'static [&'static str],
    reason: &'static str,
}

const CRATES: &[Rule] = &[
    Rule {
        folder: "core",
        package: "tribunal-core",
        may_see: &[],
        reason: "core decides, and depends on nothing of ours",
    },
    Rule {
        folder: "guard",
        package: "tribunal-guard",
        may_see: &[],
        reason: "guard judges words, and depends on nothing of ours",
    },
    Rule {
        folder: "bmad",
        package: "tribunal-bmad",
        may_see: &["core"],
        reason: "bmad turns text into core's types and back, nothing else",
    },
    Rule {
        folder: "agents",
        package: "tribunal-agents",
        may_see: &["core"],
        reason: "agents translates for core, starts nothing and keeps nothing",
    },
    Rule {
        folder: "supervise",
        package: "tribunal-supervise",
        may_see: &[],
        reason: "supervise knows processes, and nothing of ours",
    },
    Rule {
        folder: "store",
        package: "tribunal-store",
        may_see: &["core"],
        reason: "store keeps what core names, and knows nobody else",
    },
    Rule {
        folder: "report",
        package: "tribunal-report",
        may_see: &["core"],
        reason: "report sees journal events and core, nothing else",
    },
    Rule {
        folder: "runner",
        package: "tribunal-runner",
        may_see: &["core", "guard", "bmad", "agents", "supervise", "store"],
        reason: "runner acts, and does not show",
    },
    Rule {
        folder: "testkit",
        package: "tribunal-testkit",
        may_see: &["core", "agents"],
        reason: "testkit scripts agents for the tests of every crate, so it stays below them",
    },
    Rule {
        folder: "cli",
        package: "tribunal",
        may_see: &["core", "guard", "bmad", "agents", "supervise", "store", "report", "runner"],
        reason: "the binary wires the crates that ship",
    },
];

const NOT_IN_TABLE: &str = "not in the table of crates: add it to xtask/src/arch.rs with its arrows";
const NOBODY_SEES_CLI: &str = "nothing depends on the binary";
const TESTKIT_IS_FOR_TESTS: &str = "testkit is for tests: as a dev-dependency only";
const STORE_OPENS_THE_DATABASE: &str = "store opens the database, alone";

/// A crate that cannot do I/O, and the packages it may use: none of them does I/O without its default features.
struct Pure {
    folder: &'static str,
    may_use: &'static [&'static str],
}

const PURE: &[Pure] = &[
    Pure {
        folder: "core",
        may_use: &["serde", "serde_json", "schemars", "thiserror", "futures-util", "blake3"],
    },
    Pure { folder: "guard", may_use: &[] },
];

impl Pure {
    fn find(folder: &str) -> Option<&'static Pure> {
        PURE.iter().find(|pure| pure.folder == folder)
    }

    fn root_file(&self) -> String {
        format!("crates/{}/src/lib.rs", self.folder)
    }

    /// The reason why this crate may not have a dependency.
    fn refusal(&self) -> String {
        let Pure { folder, may_use } = self;
        match may_use {
            [] => format!("{folder} cannot do i/o: it uses nothing from outside"),
            may_use => format!("{folder} cannot do i/o: from outside it uses only {}", may_use.join(", ")),
        }
    }

    /// Whether an allowed dependency brings the standard library in all the same.
    fn feature_breach(&self, dependency: &Dependency) -> Option<String> {
        let (folder, name) = (self.folder, &dependency.package);
        let remedy =
            format!("{folder} is without std: write default-features = false where its version stands");
        // Tests may use the standard library; the crate itself is still compiled without it.
        if dependency.kind == Kind::Dev {
            None
        } else if dependency.default_features {
            Some(format!("tribunal-{folder} depends on {name} with default features on ({remedy})"))
        } else {
            let loud =
                dependency.features.iter().find(|feature| ["std", "default"].contains(&feature.as_str()))?;
            Some(format!(
                "tribunal-{folder} depends on {name} with feature {loud:?} ({folder} is without std: take it out)"
            ))
        }
    }
}

/// Returns every breach of the architecture below `root`, sorted.
pub fn check(root: &Path) -> Result<Vec<Breach>> {
    check_tree(root, &Tree::read(root)?)
}

pub(crate) fn check_tree(root: &Path, tree: &Tree) -> Result<Vec<Breach>> {
    // A source that cannot be parsed cannot be checked, so it is a breach itself.
    let mut breaches = tree.unreadable.clone();
    for manifest in &manifest::read_all(root)? {
        check_manifest(manifest, &mut breaches);
    }
    check_sources(tree, &mut breaches);
    breaches.sort();
    breaches.dedup();
    Ok(breaches)
}

fn check_manifest(manifest: &Manifest, breaches: &mut Vec<Breach>) {
    let mut breach = |message: String| breaches.push(Breach::in_file(&manifest.path, message));
    // A new crate must be entered in the table first; without its row nothing can be checked.
    let Some(rule) = CRATES.iter().find(|rule| rule.folder == manifest.folder) else {
        return breach(NOT_IN_TABLE.to_owned());
    };
    // The dependencies of other crates name the package, so a renamed one would escape the table.
    if manifest.package != rule.package {
        breach(format!(
            "this package is called {:?}, in the table of xtask/src/arch.rs {:?}",
            manifest.package, rule.package
        ));
    }
    for dependency in &manifest.dependencies {
        if let Some(reason) = refusal(rule, dependency) {
            let verb = if dependency.kind == Kind::Dev { "dev-depend" } else { "depend" };
            breach(format!("{} may not {verb} on {} ({reason})", rule.package, dependency.package));
        } else if let Some(pure) = Pure::find(rule.folder) {
            pure.feature_breach(dependency).into_iter().for_each(&mut breach);
        }
    }
}

/// The reason why a crate may not have this dependency; `None` if it may.
fn refusal(from: &Rule, dependency: &Dependency) -> Option<String> {
    let dev = dependency.kind == Kind::Dev;
    // A package outside the table is foreign or unknown, and other rules apply to it.
    let Some(to) = CRATES.iter().find(|rule| rule.package == dependency.package) else {
        return outside_refusal(from, dependency);
    };
    // Every crate may use the test kit for its tests, so that case comes before the table.
    let reason = match to.folder {
        "testkit" if dev => return None,
        seen if from.may_see.contains(&seen) => return None,
        "cli" => NOBODY_SEES_CLI,
        "testkit" => TESTKIT_IS_FOR_TESTS,
        _ => from.reason,
    };
    Some(reason.to_owned())
}

/// The same for a package that is not in the table.
fn outside_refusal(from: &Rule, dependency: &Dependency) -> Option<String> {
    let name = dependency.package.as_str();
    // A local package outside the table could bring any dependency in.
    if dependency.local {
        Some(NOT_IN_TABLE.to_owned())
    } else if name == "rusqlite" && from.folder != "store" {
        Some(STORE_OPENS_THE_DATABASE.to_owned())
    } else {
        let pure = Pure::find(from.folder).filter(|_| dependency.kind != Kind::Dev)?;
        (!pure.may_use.contains(&name)).then(|| pure.refusal())
    }
}

fn check_sources(tree: &Tree, breaches: &mut Vec<Breach>) {
    for source in &tree.sources {
        let mut breach = |line, message: &str| breaches.push(Breach::at_line(&source.path, line, message));
        // The search is by tokens, so `unsafe` inside macros is found and in comments it is not.
        if !source.path.starts_with("crates/supervise/") {
            for line in tokens::lines_with(&source.tokens, &["unsafe"]) {
                breach(line, "`unsafe` outside of crates/supervise (supervise holds the only `unsafe`)");
            }
        }
    }
    for pure in PURE {
        check_purity(pure, tree, breaches);
    }
}

fn check_purity(pure: &Pure, tree: &Tree, breaches: &mut Vec<Breach>) {
    let (folder, root_file) = (pure.folder, pure.root_file());
    let inside = format!("crates/{folder}/");
    for source in tree.sources.iter().filter(|source| source.path.starts_with(&inside)) {
        for line in tokens::lines_with(&source.tokens, &["extern", "crate", "std"]) {
            let message =
                format!("`extern crate std` in {folder} ({folder} cannot do i/o, not even in its tests)");
            breaches.push(Breach::at_line(&source.path, line, message));
        }
        // The attribute must be unconditional: with `cfg_attr` the crate could use the standard library in some builds.
        let without_std = || source.syntax.attrs.iter().any(|attribute| attribute.path().is_ident("no_std"));
        if source.path == root_file && !without_std() {
            let message = format!("`#![no_std]` is missing ({folder} cannot do i/o)");
            breaches.push(Breach::in_file(&root_file, message));
        }
    }
    // A missing root file is reported here, because the loop above only sees existing files.
    let has = |wanted: &str| tree.files.iter().any(|path| path == wanted);
    if has(&format!("{inside}Cargo.toml")) && !has(&root_file) {
        breaches.push(Breach::in_file(&root_file, "this file is missing (it says `#![no_std]`)"));
    }
}
